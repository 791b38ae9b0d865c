// Loads a real model into the block of chapter 08, chats with it, checks and times it, and finds
// where another implementation first differs from it.
#include "10_pretrained/program/run_pretrained.hpp"

int main(int argc, char** argv) { return t2t::run_pretrained(argc, argv, t2t::solutions); }
