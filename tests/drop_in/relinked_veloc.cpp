// A program that was compiled with VELOC's own header, and is only linked again: the class is
// declared here with the functions in VELOC's order, and our header is not seen.
// relinked_veloc CONFIGURATION.
#include <mpi.h>

#include <functional>
#include <set>
#include <string>

#include "expect.hpp"

namespace veloc {

class client_t {
 public:
  virtual bool mem_protect(int, void*, size_t, size_t, const std::string&) = 0;
  virtual bool mem_protect(int, const std::function<void(std::ostream&)>&,
                           const std::function<bool(std::istream&)>&, const std::string&) = 0;
  virtual bool mem_unprotect(int, const std::string&) = 0;
  virtual void mem_clear(const std::string&) = 0;
  virtual bool register_observer(int, const std::function<void(const std::string&, int)>&) = 0;
  virtual std::string route_file(const std::string&) = 0;
  virtual bool cleanup(const std::string&) = 0;
  virtual bool checkpoint(const std::string&, int) = 0;
  virtual bool checkpoint_begin(const std::string&, int) = 0;
  virtual bool checkpoint_mem(int, const std::set<int>&) = 0;
  virtual bool checkpoint_end(bool) = 0;
  virtual bool checkpoint_wait() = 0;
  virtual bool checkpoint_finished() = 0;
  virtual int restart_test(const std::string&, int, int) = 0;
  virtual bool restart(const std::string&, int, int) = 0;
  virtual bool restart_begin(const std::string&, int, int) = 0;
  virtual size_t recover_size(int) = 0;
  virtual bool recover_mem(int, const std::set<int>&) = 0;
  virtual bool restart_end(bool) = 0;
  virtual ~client_t() = 0;
};

client_t* get_client(unsigned int, const std::string&);
client_t* get_client(MPI_Comm, const std::string&);

}  // namespace veloc

extern "C" int VELOC_Init_single(unsigned int, const char*);
extern "C" int VELOC_Finalize(int);

int main(int, char** argv) {
  const std::string group = "default";
  veloc::client_t* const client = veloc::get_client(0U, argv[1]);
  int number = 7;
  int heard = 0;
  char letter = 'a';
  expect(client->mem_protect(1, &number, 1, sizeof number, group), "memory is protected");
  expect(client->mem_protect(
             2, [&](std::ostream& to) { to << letter; },
             [&](std::istream& from) -> bool { return !!(from >> letter); }, group),
         "functions are taken");
  expect(client->register_observer(0, [&](const std::string&, int version) { heard = version; }),
         "an observer is taken");
  expect(client->checkpoint_begin("steps", 5) && client->checkpoint_mem(0, {}) &&
             client->checkpoint_end(true) && client->checkpoint_wait() &&
             client->checkpoint_finished() && heard == 5,
         "a checkpoint is taken");
  number = 0;
  letter = 'b';
  expect(client->restart_test("steps", 0, -1) == 5, "it is found");
  expect(client->restart_begin("steps", 5, -1) && client->recover_size(1) == sizeof number &&
             client->recover_mem(1, {1, 2}) && client->restart_end(true),
         "it comes back");
  expect(number == 7 && letter == 'a', "with its values");
  expect(client->mem_unprotect(2, group) && client->cleanup("steps"), "it is given up");
  delete client;
  expect(VELOC_Init_single(1, argv[1]) == 0 && VELOC_Finalize(1) == 0,
         "the functions of C are there");
}
