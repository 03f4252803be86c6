#include "trainer/runtime/failure.h"

#include <c10/util/Exception.h>

#include <filesystem>
#include <new>

#include "hardware/files/foreign_text.h"
#include "model/error.h"

namespace trainfare::trainer {

std::string FirstLine(const std::exception& error) {
  std::string text = error.what();
  if (const auto* torch_error = dynamic_cast<const c10::Error*>(&error)) {
    text = torch_error->what_without_backtrace();
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    text = "out of memory";
  }
  return hardware::OneLine(text.substr(0, text.find('\n')));
}

bool IsBadRequest(const std::exception& error) {
  return dynamic_cast<const model::InputError*>(&error) != nullptr ||
         dynamic_cast<const c10::Error*>(&error) != nullptr ||
         dynamic_cast<const std::filesystem::filesystem_error*>(&error) !=
             nullptr ||
         dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
}

}  // namespace trainfare::trainer
