// Copying, moving and destroying a large struct, compiled once: declared in the struct and defined
// in one source file. Otherwise every file that uses the struct instantiates them.
#pragma once

#define PW_SPECIAL_MEMBERS(T) \
  T();                        \
  T(const T&);                \
  T(T&&) noexcept;            \
  T& operator=(const T&);     \
  T& operator=(T&&) noexcept; \
  ~T()

#define PW_DEFAULT_SPECIAL_MEMBERS(T)      \
  T::T() = default;                        \
  T::T(const T&) = default;                \
  T::T(T&&) noexcept = default;            \
  T& T::operator=(const T&) = default;     \
  T& T::operator=(T&&) noexcept = default; \
  T::~T() = default
