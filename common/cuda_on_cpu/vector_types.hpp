// CUDA's small vectors and dim3, for the stand-in. They are aligned as on a GPU, where a float4 is
// read in one access of 16 bytes.
#pragma once

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

namespace t2t::stand_in {

/// With a member of this type, copying a struct is a function call: clang checks the address of
/// what is copied only in calls (misaligned.cpp).
struct CopiedByCall {
  constexpr CopiedByCall() = default;
  constexpr CopiedByCall(const CopiedByCall&) {}
  constexpr CopiedByCall& operator=(const CopiedByCall&) { return *this; }
};

}  // namespace t2t::stand_in

struct alignas(8) float2 {
  float x, y;
  [[no_unique_address]] t2t::stand_in::CopiedByCall copied{};
};
struct alignas(16) float4 {
  float x, y, z, w;
  [[no_unique_address]] t2t::stand_in::CopiedByCall copied{};
};
struct alignas(8) int2 {
  int x, y;
  [[no_unique_address]] t2t::stand_in::CopiedByCall copied{};
};
struct alignas(16) int4 {
  int x, y, z, w;
  [[no_unique_address]] t2t::stand_in::CopiedByCall copied{};
};
struct alignas(8) uint2 {
  unsigned x, y;
  [[no_unique_address]] t2t::stand_in::CopiedByCall copied{};
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
  [[no_unique_address]] t2t::stand_in::CopiedByCall copied{};
};

// clang-format off
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
// clang-format on
