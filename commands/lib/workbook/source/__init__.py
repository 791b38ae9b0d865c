"""What C++ sources and the pages say: what a source defines, what a function declares, where a page
quotes it."""
