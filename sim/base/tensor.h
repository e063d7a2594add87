// Tensor types: element type and shape, and the bytes they take.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include "sim/base/check.h"
#include "sim/base/terms.h"
#include "sim/base/units.h"

namespace sim {

// Up to five dimensions; rank 0 is a scalar with one element.
struct Shape {
  static constexpr int kMaxRank = 5;
  std::array<std::int64_t, kMaxRank> sizes{};
  int rank = 0;

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<std::int64_t> dims) {
    CHECK(dims.size() <= kMaxRank, "a shape has at most five dimensions");
    for (std::int64_t d : dims) sizes[static_cast<std::size_t>(rank++)] = d;
  }
  constexpr std::int64_t operator[](int i) const {
    return sizes[static_cast<std::size_t>(i < 0 ? rank + i : i)];
  }
  constexpr std::int64_t& operator[](int i) {
    return sizes[static_cast<std::size_t>(i < 0 ? rank + i : i)];
  }
  constexpr std::int64_t elements() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= sizes[static_cast<std::size_t>(i)];
    return n;
  }
  friend constexpr bool operator==(const Shape&, const Shape&) = default;
};

struct TensorType {
  DType dtype = DType::f32;
  Shape shape;

  constexpr Bytes bytes() const { return {(shape.elements() * bits(dtype) + 7) / 8}; }
  friend constexpr bool operator==(const TensorType&, const TensorType&) = default;
};

}  // namespace sim
