// Dense typed indices in place of strings and pointers.
//   struct TensorTag; using TensorId = Id<TensorTag>;
//   IdVector<TensorId, TensorInfo> tensors;  TensorId t = tensors.push_back({...});  tensors[t]
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sim {

template <class Tag>
struct Id {
  static constexpr std::uint32_t kNone = 0xffffffffu;
  std::uint32_t value = kNone;

  constexpr bool valid() const { return value != kNone; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

// A vector indexed by one kind of Id only.
template <class IdType, class T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(std::size_t n, const T& fill = T{}) : items_(n, fill) {}

  IdType push_back(T item) {
    items_.push_back(std::move(item));
    return IdType{static_cast<std::uint32_t>(items_.size() - 1)};
  }
  decltype(auto) operator[](IdType id) { return items_[id.value]; }
  decltype(auto) operator[](IdType id) const { return items_[id.value]; }
  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  void resize(std::size_t n, const T& fill = T{}) { items_.resize(n, fill); }
  void reserve(std::size_t n) { items_.reserve(n); }
  void clear() { items_.clear(); }
  IdType next_id() const { return IdType{static_cast<std::uint32_t>(items_.size())}; }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  T& back() { return items_.back(); }
  const T& back() const { return items_.back(); }

 private:
  std::vector<T> items_;
};

struct RankTag;
struct HostTag;
struct GroupTag;
struct ScopeTag;
using RankId = Id<RankTag>;    // global rank
using HostId = Id<HostTag>;    // node of the cluster
using GroupId = Id<GroupTag>;  // process group (communicator)
using ScopeId = Id<ScopeTag>;  // dotted module or parameter path

}  // namespace sim
