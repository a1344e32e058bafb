// Answers one request of the page in a separate process, which contains the effects of untrusted
// rules and graphs.
#pragma once

#include <cstdint>

namespace pw::cli {

/// Reads two frames, request and graph, from standard input, and writes two, answer and picture, to
/// standard output. The picture is empty if the page already has it or there is none. Drops all
/// privileges that are not needed: files, most memory, more than `seconds` of time. Returns the
/// exit code.
int answer_one(std::int64_t seconds);

}  // namespace pw::cli
