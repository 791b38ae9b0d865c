// The checks of latent attention lie in 23_latent/: both forms, the cache, and the backward pass.
