// The checks of fine-tuning lie in 17_fine_tuning/: lessons, adapters and their gradients.
