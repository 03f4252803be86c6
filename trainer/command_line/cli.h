#pragma once

// What headers here name of the library behind the command line, which they do
// not include.

// NOLINTNEXTLINE(readability-identifier-naming): the name is the library's.
namespace CLI {
class App;
class Option;
}  // namespace CLI
