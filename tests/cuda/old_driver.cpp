// A driver of CUDA 11.4 without a GPU, for the check that a driver which is too old is named.
extern "C" int cuDriverGetVersion(int* version) {
  *version = 11040;
  return 0;
}
extern "C" int cuInit(unsigned) { return 0; }
