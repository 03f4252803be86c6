#include "trainer/host_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>

#include "trainer/aten.h"

namespace trainfare::trainer {
namespace {

constexpr size_t kAlignment = 64;  // a cache line, and what oneDNN wants
constexpr size_t kLargeBlock = size_t{1} << 20;
constexpr size_t kHugePage = size_t{2} << 20;

// Stands in front of every block.
struct alignas(kAlignment) Header {
  size_t capacity;      // bytes behind the header
  size_t used;          // bytes asked for
  void* mapping;        // what mmap gave; nullptr for a block of the C library
  size_t mapping_size;  // bytes of it
};

Header* HeaderOf(void* data) { return static_cast<Header*>(data) - 1; }

class HostAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &Release, at::kCPU};
    Header* header = bytes < kLargeBlock ? Small(bytes) : Large(bytes);
    header->used = bytes;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      memory_.allocated_bytes += static_cast<int64_t>(bytes);
      memory_.peak_allocated_bytes =
          std::max(memory_.peak_allocated_bytes, memory_.allocated_bytes);
    }
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
    for (const auto& [capacity, header] : unused_) {
      memory_.reserved_bytes -= static_cast<int64_t>(header->mapping_size);
      ::munmap(header->mapping, header->mapping_size);
    }
    unused_.clear();
  }

 private:
  static void Release(void* data);

  static Header* Small(size_t bytes) {
    void* block = nullptr;
    if (::posix_memalign(&block, kAlignment, sizeof(Header) + bytes) != 0) {
      throw std::bad_alloc();
    }
    return new (block) Header{bytes, bytes, nullptr, 0};
  }

  Header* Large(size_t bytes) {
    const size_t wanted =
        (sizeof(Header) + bytes + kHugePage - 1) / kHugePage * kHugePage;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      // The tightest block, if it wastes less than an eighth.
      const auto found = unused_.lower_bound(bytes);
      if (found != unused_.end() && found->first <= wanted + wanted / 8) {
        Header* header = found->second;
        unused_.erase(found);
        return header;
      }
    }
    // One huge page more than wanted, to start on a huge-page boundary.
    const size_t mapped = wanted + kHugePage;
    void* mapping = ::mmap(nullptr,
                           mapped,
                           PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                           -1,
                           0);
    if (mapping == MAP_FAILED) {
      TORCH_CHECK(false,
                  "out of memory: ",
                  bytes,
                  " bytes more were asked for, ",
                  memory().allocated_bytes,
                  " are in use");
    }
    const auto address = reinterpret_cast<uintptr_t>(mapping);
    const uintptr_t aligned = (address + kHugePage - 1) / kHugePage * kHugePage;
    void* block = reinterpret_cast<void*>(aligned);
    ::madvise(block, wanted, MADV_HUGEPAGE);  // a wish: may be refused
    const std::lock_guard<std::mutex> lock(mutex_);
    memory_.reserved_bytes += static_cast<int64_t>(mapped);
    return new (block) Header{wanted - sizeof(Header), bytes, mapping, mapped};
  }

  void Keep(Header* header) {
    const std::lock_guard<std::mutex> lock(mutex_);
    memory_.allocated_bytes -= static_cast<int64_t>(header->used);
    if (header->mapping == nullptr) {
      std::free(header);
    } else {
      unused_.emplace(header->capacity, header);
    }
  }

  std::mutex mutex_;
  std::multimap<size_t, Header*> unused_;
  HostMemory memory_;
};

// Never destroyed: tensors with static lifetime may outlive any order.
HostAllocator& Instance() {
  static auto* allocator = new HostAllocator;
  return *allocator;
}

void HostAllocator::Release(void* data) {
  if (data != nullptr) Instance().Keep(HeaderOf(data));
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
