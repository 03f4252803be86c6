#include "trainer/network/autocast.h"

namespace trainfare::trainer {

Autocast::Autocast(at::DeviceType device, std::optional<at::ScalarType> type)
    : device_(device), enabled_(type.has_value()) {
  if (!enabled_) return;
  at::autocast::set_autocast_dtype(device_, *type);
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!enabled_) return;
  at::autocast::decrement_nesting();
  at::autocast::clear_cache();  // casts of weights that are about to change
  at::autocast::set_autocast_enabled(device_, false);
}

std::optional<at::ScalarType> Autocast::TypeOn(at::DeviceType device) {
  if (!at::autocast::is_autocast_enabled(device)) return std::nullopt;
  return at::autocast::get_autocast_dtype(device);
}

}  // namespace trainfare::trainer
