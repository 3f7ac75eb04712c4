#include "process/x86_64/vdso.hpp"

#include <elf.h>
#include <fmt/core.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace diapause::process {
namespace {

struct Function {
  std::uint64_t offset = 0, bytes = 0;
};

template <class T>
std::optional<T> read_at(ByteView code, std::uint64_t offset) {
  if (offset > code.size() || code.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, code.data() + offset, sizeof value);
  return value;
}

std::string text_at(ByteView code, std::uint64_t offset) {
  if (offset >= code.size()) return "";
  const ByteView rest = code.subspan(offset);
  const auto end = std::ranges::find(rest, std::byte{0});
  return {reinterpret_cast<const char*>(rest.data()), static_cast<std::size_t>(end - rest.begin())};
}

// Adds the functions of a table of symbols, by the kernel's name of the call: each has an alias
// with the prefix "__vdso_".
void add_functions(ByteView code, const Elf64_Shdr& table, const Elf64_Shdr& texts,
                   std::map<std::string, Function>& functions) {
  constexpr std::string_view kPrefix = "__vdso_";
  for (std::uint64_t i = 0; i < table.sh_size / sizeof(Elf64_Sym); ++i) {
    const auto symbol = read_at<Elf64_Sym>(code, table.sh_offset + i * sizeof(Elf64_Sym));
    if (!symbol) return;
    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF) continue;
    std::string name = text_at(code, texts.sh_offset + symbol->st_name);
    if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
    functions[name] = {symbol->st_value, symbol->st_size};
  }
}

// A vdso lies in memory as its file is, from address 0 on.
std::map<std::string, Function> functions_of(ByteView code) {
  std::map<std::string, Function> functions;
  const auto header = read_at<Elf64_Ehdr>(code, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return functions;
  const auto section = [&](std::uint64_t number) {
    return number < header->e_shnum
               ? read_at<Elf64_Shdr>(code, header->e_shoff + number * sizeof(Elf64_Shdr))
               : std::nullopt;
  };
  for (std::uint64_t number = 0; number < header->e_shnum; ++number) {
    const auto table = section(number);
    if (!table) break;
    if (table->sh_type != SHT_DYNSYM) continue;
    const auto texts = section(table->sh_link);
    if (texts) add_functions(code, *table, *texts, functions);
  }
  return functions;
}

// This enters an enclave of SGX by an instruction, and reads nothing of the kernel.
constexpr std::string_view kStaysAsItIs = "sgx_enter_enclave";

struct Instead {
  const char* function;
  std::int64_t call;
};
constexpr Instead kCalls[] = {{"clock_gettime", SYS_clock_gettime},
                              {"gettimeofday", SYS_gettimeofday},
                              {"time", SYS_time},
                              {"getcpu", SYS_getcpu},
                              {"clock_getres", SYS_clock_getres},
                              {"getrandom", SYS_getrandom}};

// Returns the number of the system call that does what a function does, or -1.
std::int64_t call_instead_of(const std::string& name) {
  const auto found = std::ranges::find(kCalls, name, &Instead::function);
  return found == std::end(kCalls) ? -1 : found->call;
}

// mov $address, %rax; jmp *%rax
ByteVector jump_to(std::uint64_t address) {
  ByteVector code = {std::byte{0x48}, std::byte{0xb8}};
  const ByteView bytes = as_byte_view(address);
  code.insert(code.end(), bytes.begin(), bytes.end());
  code.insert(code.end(), {std::byte{0xff}, std::byte{0xe0}});
  return code;
}

// mov $number, %eax; syscall; ret
ByteVector call_of(std::int64_t number) {
  const auto value = static_cast<std::uint32_t>(number);
  ByteVector code = {std::byte{0xb8}};
  const ByteView bytes = as_byte_view(value);
  code.insert(code.end(), bytes.begin(), bytes.end());
  code.insert(code.end(), {std::byte{0x0f}, std::byte{0x05}, std::byte{0xc3}});
  return code;
}

}  // namespace

bool is_made_by_vdso(std::int64_t call) {
  return std::ranges::find(kCalls, call, &Instead::call) != std::end(kCalls);
}

Result<ByteVector> lead_over(ByteView known, ByteView own, std::uint64_t address) {
  const std::map<std::string, Function> ours = functions_of(own), theirs = functions_of(known);
  if (theirs.empty())
    return fail(Code::mismatch, "the kernel's code in the image has no functions");
  ByteVector changed(known.begin(), known.end());
  for (const auto& [name, function] : theirs) {
    if (name == kStaysAsItIs) continue;
    const auto here = ours.find(name);
    const std::int64_t call = call_instead_of(name);
    // Generators of random numbers keep their state in the program, in a form that kernels change.
    const bool is_called = call == SYS_getrandom || (here == ours.end() && call >= 0);
    if (!is_called && here == ours.end())
      return fail(Code::mismatch, fmt::format("the kernel here has no function {}", name));
    const ByteVector code = is_called ? call_of(call) : jump_to(address + here->second.offset);
    const bool has_room = function.bytes >= code.size() && function.offset <= changed.size() &&
                          changed.size() - function.offset >= code.size();
    if (!has_room) {
      return fail(Code::mismatch,
                  fmt::format("the function {} of the kernel of the image is too short", name));
    }
    std::ranges::copy(code, changed.begin() + static_cast<std::ptrdiff_t>(function.offset));
  }
  return changed;
}

}  // namespace diapause::process
