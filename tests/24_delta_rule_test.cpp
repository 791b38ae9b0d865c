// The checks of linear attention and the delta rule lie in 24_delta_rule/: the recurrence and the
// chunks, the backward pass, the layer around them, and what a state remembers.
