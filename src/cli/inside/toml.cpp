// Defines what the headers of toml++ declare and do not define.
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
