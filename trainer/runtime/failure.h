#pragma once

#include <exception>
#include <string>

namespace trainfare::trainer {

// The first line of what an exception says; LibTorch appends a stack trace.
std::string FirstLine(const std::exception& error);

// True where what was asked for is at fault (bad input, out of memory, an
// operator that refuses its arguments), false for a defect of ours.
bool IsBadRequest(const std::exception& error);

}  // namespace trainfare::trainer
