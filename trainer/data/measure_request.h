#pragma once

// A line of a plan: the run that it asks for.

#include <string>

#include "model/request_fields.h"

namespace trainfare::trainer {

using model::MeasureRequest;

// With what a request need not say. Throws InputError that names the key.
MeasureRequest ReadMeasureRequest(const std::string& text);

}  // namespace trainfare::trainer
