// Answers one question of the page, in a process of its own: what strangers' rules and graphs do to
// it ends with it.
#pragma once

#include <cstdint>

namespace pw::cli {

/// Reads two frames, question and graph, from standard input, and writes two, answer and picture,
/// to standard output; the picture is empty where the page has it, or there is none. Takes away
/// from this process what no question needs: files, most memory, more than `seconds` of time.
/// The exit code.
int answer_one(std::int64_t seconds);

}  // namespace pw::cli
