// Where results go. stdout carries the result only; everything else goes to stderr.
#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/base/diagnostics.h"

namespace sim::cli {

// The world fails: a disk is full, a folder may not be written. Caught once, in main.
struct IoError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Writes a result to `file`, or to stdout where that is empty or "-". A regular file appears whole
// or not at all, and keeps its mode: it is written under a temporary name beside its place (that of
// the real file, where `file` is a link) and then renamed. A pipe or a device is written to as it
// stands. A reader that closes the pipe early has had what it wanted; that is no error.
void write_result(const std::string& text, const std::string& file = {});

// False, with an error filed, where writing to `output` would replace one of `inputs`.
bool may_write(const std::string& output, const std::vector<std::string>& inputs,
               Diagnostics& diagnostics);

// Prints errors and warnings about the input on stderr.
void print_diagnostics(const Diagnostics& diagnostics);
// The same, and the exit code of an input that is refused: 2.
int refuse(const Diagnostics& diagnostics);

// --color auto|always|never; auto: a terminal, unless NO_COLOR or TERM=dumb speak against it, or
// CLICOLOR_FORCE or FORCE_COLOR for it.
bool want_colour(const std::string& mode, std::FILE* stream);

}  // namespace sim::cli
