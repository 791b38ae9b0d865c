// The checks of experiments lie in 18_experiments/: what they change about blocks, their sides, the
// LSTM, the encoder-decoder and the classifier.
