#include "trainer/optimizer/layer_depth.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

namespace trainfare::trainer {
namespace {

// The number of the block that a parameter stands in; -1 outside of blocks.
int64_t BlockOf(std::string_view name) {
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('.'));
    int64_t number = -1;
    const auto [end, error] =
        std::from_chars(part.data(), part.data() + part.size(), number);
    if (error == std::errc() && end == part.data() + part.size()) return number;
    name.remove_prefix(std::min(part.size() + 1, name.size()));
  }
  return -1;
}

bool IsOfDecoder(std::string_view name) {
  return name.find(".decoder.") != std::string_view::npos;
}

}  // namespace

Blocks BlocksOf(const std::vector<Parameter>& parameters) {
  Blocks blocks;
  for (const Parameter& parameter : parameters) {
    int64_t& count =
        IsOfDecoder(parameter.name) ? blocks.decoder_layers : blocks.layers;
    count = std::max(count, BlockOf(parameter.name) + 1);
  }
  return blocks;
}

int64_t DepthOf(const std::string& parameter, const Blocks& blocks) {
  const int64_t block = BlockOf(parameter);
  if (block >= 0) {
    return (IsOfDecoder(parameter) ? blocks.layers : 0) + block + 1;
  }
  const bool embedding = parameter.find("embed") != std::string::npos ||
                         parameter.find(".wte.") != std::string::npos ||
                         parameter.find(".wpe.") != std::string::npos ||
                         parameter.find(".shared.") != std::string::npos;
  return embedding ? 0 : blocks.layers + blocks.decoder_layers + 1;
}

}  // namespace trainfare::trainer
