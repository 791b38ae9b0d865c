// The checks of the mixture of experts lie in 14_mixture_of_experts/: the router, the experts, and
// what balances their load.
