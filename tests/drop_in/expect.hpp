// What the programs that test drop-in libraries from C++ share.
#pragma once

#include <cstdlib>
#include <iostream>

// Ends the program with a message unless the condition holds.
inline void expect(bool condition, const char* text) {
  if (condition) return;
  std::cerr << "not so: " << text << '\n';
  std::exit(1);
}
