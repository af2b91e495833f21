// A queue that allocates only when it grows beyond its largest size so far, because every tracked launch uses one.
// Thread rule: guarded by its owner's lock.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace xschedd::shim {

template <typename T>
class RingQueue {
 public:
  bool Empty() const { return count_ == 0; }
  std::size_t Size() const { return count_; }
  // 0 is the oldest.
  T& operator[](std::size_t index) { return items_[(head_ + index) & (items_.size() - 1)]; }
  const T& operator[](std::size_t index) const { return items_[(head_ + index) & (items_.size() - 1)]; }
  T& Front() { return (*this)[0]; }
  const T& Front() const { return (*this)[0]; }
  T& Back() { return (*this)[count_ - 1]; }
  const T& Back() const { return (*this)[count_ - 1]; }
  void Push(const T& item) {
    if (count_ == items_.size()) Grow();
    ++count_;
    Back() = item;
  }
  T Pop() {
    T item = Front();
    head_ = (head_ + 1) & (items_.size() - 1);
    --count_;
    return item;
  }
  void Clear() { head_ = count_ = 0; }

 private:
  void Grow() {
    std::vector<T> larger(items_.empty() ? 8 : 2 * items_.size());  // a power of two
    for (std::size_t i = 0; i < count_; ++i)
      larger[i] = (*this)[i];
    items_ = std::move(larger);
    head_ = 0;
  }

  std::vector<T> items_;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
};

}  // namespace xschedd::shim
