// How a process of the project's uses the allocator.
#pragma once

namespace pw {

/// Keeps large arrays out of the heap of small blocks, from the start of a program on. The C
/// library raises its own threshold as large blocks are freed, up to 32 MiB; arrays below it then
/// lie among small blocks, and what is freed around them is not given back: 8 to 20 bytes a node of
/// a graph of a million. Does nothing where the C library has no such setting.
void keep_large_arrays_apart();

}  // namespace pw
