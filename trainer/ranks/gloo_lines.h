#pragma once

// What Gloo tells of connections that fail.

#include <iosfwd>

namespace trainfare::trainer {

// Keeps Gloo's own lines off `stream`, which is to be std::cerr: it writes them
// there whatever its level, one for each try to reach a rank that is lost. What
// is wrong we say ourselves, in a line. All else passes, also of other threads,
// to the end of the program.
void DropGlooLines(std::ostream& stream);

}  // namespace trainfare::trainer
