#include "trainer/runtime/host_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <utility>

#include "trainer/runtime/aten.h"

namespace trainfare::trainer {
namespace {

constexpr size_t kAlignment = 64;  // a cache line, and what oneDNN wants
constexpr size_t kLargeBlock = size_t{64} << 10;
constexpr size_t kGranule = size_t{4} << 10;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kSegment = size_t{64} << 20;

constexpr size_t RoundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Stands in front of every block that is in use.
struct alignas(kAlignment) Header {
  size_t size;  // header included; 0 for a block of the C library
  size_t used;  // bytes asked for
};

// Large blocks are cut from segments of huge pages, best fit first; neighbours
// that are free join again.
class HostAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &Release, at::kCPU};
    const std::lock_guard<std::mutex> lock(mutex_);
    Header* header = bytes < kLargeBlock ? Small(bytes) : Large(bytes);
    memory_.allocated_bytes += static_cast<int64_t>(bytes);
    memory_.peak_allocated_bytes =
        std::max(memory_.peak_allocated_bytes, memory_.allocated_bytes);
    void* data = header + 1;
    return {data, data, &Release, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Release; }
  void copy_data(void* to, const void* from, size_t count) const override {
    default_copy_data(to, from, count);
  }

  HostMemory memory() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return memory_;
  }
  void ResetPeak() {
    const std::lock_guard<std::mutex> lock(mutex_);
    memory_.peak_allocated_bytes = memory_.allocated_bytes;
  }
  void ReleaseUnused() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto segment = segments_.begin(); segment != segments_.end();) {
      const auto [start, size] = *segment;
      const auto free = free_.find(start);
      if (free == free_.end() || free->second != size) {
        // In use at least in part: what is free of it goes, page by page.
        ReleasePages(start, size);
        ++segment;
        continue;
      }
      RemoveFree(free);
      memory_.reserved_bytes -= static_cast<int64_t>(size);
      ::munmap(reinterpret_cast<void*>(start), size);
      segment = segments_.erase(segment);
    }
  }

 private:
  using Free = std::map<uintptr_t, size_t>;  // start, size

  static void Release(void* data);

  static Header* Small(size_t bytes) {
    void* block = nullptr;
    if (::posix_memalign(&block, kAlignment, sizeof(Header) + bytes) != 0) {
      throw std::bad_alloc();
    }
    return new (block) Header{0, bytes};
  }

  Header* Large(size_t bytes) {
    const size_t size = RoundUp(sizeof(Header) + bytes, kGranule);
    auto best = by_size_.lower_bound({size, 0});
    if (best == by_size_.end()) {
      AddSegment(RoundUp(std::max(size, kSegment), kHugePage), bytes);
      best = by_size_.lower_bound({size, 0});
    }
    const auto [found, start] = *best;
    RemoveFree(free_.find(start));
    if (found > size) AddFree(start + size, found - size);
    return new (reinterpret_cast<void*>(start)) Header{size, bytes};
  }

  void AddSegment(size_t size, size_t asked) {
    // One huge page more than wanted, to start on a huge-page boundary; what
    // hangs over goes back at once.
    void* mapping = FitsInMemory(size)
                        ? ::mmap(nullptr,
                                 size + kHugePage,
                                 PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                                 -1,
                                 0)
                        : MAP_FAILED;
    TORCH_CHECK_WITH(OutOfMemoryError,
                     mapping != MAP_FAILED,
                     "out of memory: a tensor of ",
                     asked,
                     " bytes does not fit beside the ",
                     memory_.allocated_bytes,
                     " bytes in use");
    const auto address = reinterpret_cast<uintptr_t>(mapping);
    const uintptr_t start = RoundUp(address, kHugePage);
    if (start > address) ::munmap(mapping, start - address);
    const uintptr_t tail = address + kHugePage - start;
    if (tail > 0) ::munmap(reinterpret_cast<void*>(start + size), tail);
    // A wish: kernels may be set to refuse it.
    ::madvise(reinterpret_cast<void*>(start), size, MADV_HUGEPAGE);
    segments_.emplace(start, size);
    memory_.reserved_bytes += static_cast<int64_t>(size);
    AddFree(start, size);
  }

  // The kernel would grant the mapping and kill the process when it is touched.
  static bool FitsInMemory(size_t size) {
    std::ifstream file("/proc/meminfo");
    std::string key;
    size_t kilobytes = 0;
    for (std::string unit; file >> key >> kilobytes; std::getline(file, unit)) {
      if (key == "MemAvailable:") return size / 1024 < kilobytes;
    }
    return true;
  }

  void AddFree(uintptr_t start, size_t size) {
    free_.emplace(start, size);
    by_size_.emplace(size, start);
  }
  void RemoveFree(Free::iterator block) {
    by_size_.erase({block->second, block->first});
    free_.erase(block);
  }

  // True where a segment begins: blocks of two segments never join.
  bool IsSegmentStart(uintptr_t address) const {
    return segments_.find(address) != segments_.end();
  }

  void ReleasePages(uintptr_t segment, size_t segment_size) {
    for (auto block = free_.lower_bound(segment);
         block != free_.end() && block->first < segment + segment_size;
         ++block) {
      ::madvise(
          reinterpret_cast<void*>(block->first), block->second, MADV_DONTNEED);
    }
  }

  void Keep(void* data) {
    Header* header = static_cast<Header*>(data) - 1;
    const std::lock_guard<std::mutex> lock(mutex_);
    memory_.allocated_bytes -= static_cast<int64_t>(header->used);
    if (header->size == 0) {
      std::free(header);
      return;
    }
    auto start = reinterpret_cast<uintptr_t>(header);
    size_t size = header->size;
    const auto next = free_.lower_bound(start);
    if (next != free_.end() && next->first == start + size &&
        !IsSegmentStart(next->first)) {
      size += next->second;
      RemoveFree(next);
    }
    const auto after = free_.lower_bound(start);
    if (after != free_.begin() && !IsSegmentStart(start)) {
      const auto previous = std::prev(after);
      if (previous->first + previous->second == start) {
        start = previous->first;
        size += previous->second;
        RemoveFree(previous);
      }
    }
    AddFree(start, size);
  }

  std::mutex mutex_;
  std::map<uintptr_t, size_t> segments_;  // start, size
  Free free_;
  std::set<std::pair<size_t, uintptr_t>> by_size_;
  HostMemory memory_;
};

// Never destroyed: tensors with static lifetime may outlive any order.
HostAllocator& Instance() {
  static auto* allocator = new HostAllocator;
  return *allocator;
}

void HostAllocator::Release(void* data) {
  if (data != nullptr) Instance().Keep(data);
}

}  // namespace

void InstallHostAllocator() {
  c10::SetCPUAllocator(&Instance(), /*priority=*/100);
  // What LibTorch takes from the C library itself (matrix packing, oneDNN
  // scratch) is kept in the same way.
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, -1);
  ::mallopt(M_TOP_PAD, 64 << 20);
}

HostMemory HostMemoryInUse() { return Instance().memory(); }
void ResetPeakHostMemory() { Instance().ResetPeak(); }
void ReleaseHostMemory() {
  Instance().ReleaseUnused();
  ::malloc_trim(0);
}

}  // namespace trainfare::trainer
