// Barriers, shuffles and votes for the stand-in, with CUDA's names and meaning. The lanes in the
// mask wait for each other. A lane that never comes, or that reads from a lane outside the mask, is
// reported as a fault.
#pragma once

#include "cuda_on_cpu/stand_in.hpp"

inline void __syncthreads(t2t::stand_in::Place place = t2t::stand_in::Place::current()) {
  t2t::stand_in::wait_for_block(place);
}

namespace t2t {

/// bar.sync: waits until `threads` of the block's threads wait at barrier `id`, 1 to 15.
inline void barrier_sync(int id, int threads, stand_in::Place place = stand_in::Place::current()) {
  stand_in::wait_for_named(id, threads, place);
}

/// bar.arrive: counts at barrier `id` as one of the `threads` that it waits for, and goes on.
inline void barrier_arrive(int id, int threads,
                           stand_in::Place place = stand_in::Place::current()) {
  stand_in::arrive_at_named(id, threads, place);
}

namespace stand_in {

template <class T>
struct Shuffled {
  T value;
  unsigned by;     // lane, distance or bits to flip
  unsigned width;  // the lanes of a group, which shuffle among themselves; 32 is a warp

  unsigned group(unsigned lane) const { return lane & ~(width - 1); }
};

/// Each lane gets the value of lane source(lane, its call).
template <class T, class Source>
T shuffle(unsigned mask, T value, unsigned by, int width, Source, const Place& place) {
  if (width < 1 || width > 32 || (width & (width - 1)) != 0) {
    fault("a shuffle's width is a power of two up to 32, not " + std::to_string(width), place);
  }
  return meet<T>(
      mask, Shuffled<T>{value, by, static_cast<unsigned>(width)},
      [](unsigned lane, const LaneMeeting& lanes) {
        const auto& call = lanes.read<Shuffled<T>>(lane, lane);
        return lanes.read<Shuffled<T>>(Source{}(lane, call), lane).value;
      },
      place);
}

}  // namespace stand_in
}  // namespace t2t

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              t2t::stand_in::Place place = t2t::stand_in::Place::current()) {
  return t2t::stand_in::shuffle(
      mask, value, static_cast<unsigned>(source), width,
      [](unsigned lane, const auto& call) {
        return call.group(lane) | (call.by & (call.width - 1));
      },
      place);
}

/// Reads from lane XOR bits. A lane whose partner is in a later group keeps its own value.
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32,
                  t2t::stand_in::Place place = t2t::stand_in::Place::current()) {
  return t2t::stand_in::shuffle(
      mask, value, static_cast<unsigned>(bits), width,
      [](unsigned lane, const auto& call) {
        const unsigned source = (lane ^ call.by) & 31;
        return call.group(source) > call.group(lane) ? lane : source;
      },
      place);
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32,
                 t2t::stand_in::Place place = t2t::stand_in::Place::current()) {
  return t2t::stand_in::shuffle(
      mask, value, distance, width,
      [](unsigned lane, const auto& call) {
        return lane - call.group(lane) >= call.by ? lane - call.by : lane;
      },
      place);
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32,
                   t2t::stand_in::Place place = t2t::stand_in::Place::current()) {
  return t2t::stand_in::shuffle(
      mask, value, distance, width,
      [](unsigned lane, const auto& call) {
        return lane - call.group(lane) + call.by < call.width ? lane + call.by : lane;
      },
      place);
}

/// Has a bit set for each lane of the mask whose predicate is not zero.
inline unsigned __ballot_sync(unsigned mask, int predicate,
                              t2t::stand_in::Place place = t2t::stand_in::Place::current()) {
  return t2t::stand_in::meet<unsigned>(
      mask, predicate,
      [](unsigned reader, const t2t::stand_in::LaneMeeting& lanes) {
        unsigned votes = 0;
        for (unsigned lane = 0; lane < 32; ++lane) {
          if ((lanes.mask >> lane & 1) && lanes.read<int>(lane, reader) != 0) votes |= 1u << lane;
        }
        return votes;
      },
      place);
}

inline int __any_sync(unsigned mask, int predicate,
                      t2t::stand_in::Place place = t2t::stand_in::Place::current()) {
  return __ballot_sync(mask, predicate, place) != 0;
}

inline int __all_sync(unsigned mask, int predicate,
                      t2t::stand_in::Place place = t2t::stand_in::Place::current()) {
  return __ballot_sync(mask, predicate, place) == mask;
}

inline void __syncwarp(unsigned mask = ~0u,
                       t2t::stand_in::Place place = t2t::stand_in::Place::current()) {
  t2t::stand_in::meet_lanes(
      mask, nullptr, nullptr, [](const t2t::stand_in::LaneMeeting&) {}, place, true);
}
