#pragma once

// Names of rented machines in the place of a device's: "trn1", "p4d.24xlarge",
// "v3-8".

#include <string>

namespace trainfare::scenarios {

// Throws InputError that says what to ask for, where `name` is that of an
// instance, the family of some, or a slice of TPUs; a device's is none of them.
void RefuseInstance(const std::string& name);

}  // namespace trainfare::scenarios
