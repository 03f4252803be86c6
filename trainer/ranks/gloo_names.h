#pragma once

// The names of Gloo that c10d's ProcessGroupGloo.hpp mentions. LibTorch has
// Gloo inside and exports ProcessGroupGloo, but its wheel leaves Gloo's own
// headers out. c10d holds these types by pointer only, so that names are all it
// takes: trainer/libtorch.cmake makes the files `gloo/*.h` that lead here.
// Nothing may be called through them, and no ProcessGroupGloo::GlooStore made:
// its table of functions would not be LibTorch's.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace rendezvous {
class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::vector<char>& data) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys,
                    const std::chrono::milliseconds& timeout) = 0;
};
}  // namespace rendezvous

namespace transport {
class Device;
class UnboundBuffer;
}  // namespace transport

}  // namespace gloo
