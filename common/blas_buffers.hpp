// OpenBLAS's memory, taken at the start. For linalg.cpp alone.
//
// OpenBLAS needs a buffer for each thread, and for each product that runs at the same time. It
// takes some of them while it is loaded, before main, and the others when it first needs them. When
// a memory limit leaves too little, it tries again forever. All buffers are therefore taken at the
// start, and where a limit is set, two seconds of CPU time are allowed for that, from before the
// libraries are loaded. Without this file all results are the same, but a program whose memory
// limit is too low for its threads hangs, where it now ends with a line that says what to raise or
// to lower.
#pragma once

namespace t2t {

/// Takes all buffers, and gives them back to OpenBLAS, which keeps them. Does nothing with another
/// BLAS. Called before main. The limit of two seconds is set by the same object file, which the
/// linker takes out of the library because of this call.
void take_blas_buffers();

}  // namespace t2t
