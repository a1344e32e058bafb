// Copying, moving and destroying a large struct, compiled once: said in the struct, and made in one
// source file. Without them every file that touches the struct instantiates all of it anew.
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
