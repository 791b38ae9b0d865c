// The checks of serving lie in 15_serving/: pages, attention over them, the scheduler, traces of
// requests, and the engine with a model.
