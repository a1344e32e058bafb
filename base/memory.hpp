// Allocator settings of the project's processes.
#pragma once

namespace pw {

/// Keeps large arrays out of the heap of small blocks; called at the start of a program. The C
/// library raises its own threshold as large blocks are freed, up to 32 MiB. Arrays below it then
/// share the heap with small blocks, whose memory is not returned: 8 to 20 bytes a node for a graph
/// of a million nodes. Does nothing if the C library has no such setting.
void keep_large_arrays_apart();

}  // namespace pw
