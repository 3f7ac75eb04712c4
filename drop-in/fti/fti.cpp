// The functions of fti.h: one run a process, and what it answers in FTI's numbers.
#include "fti.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "run.hpp"

extern "C" {

MPI_Comm FTI_COMM_WORLD = MPI_COMM_NULL;
fti_id_t FTI_CHAR = 0;
fti_id_t FTI_SHRT = 1;
fti_id_t FTI_INTG = 2;
fti_id_t FTI_LONG = 3;
fti_id_t FTI_UCHR = 4;
fti_id_t FTI_USHT = 5;
fti_id_t FTI_UINT = 6;
fti_id_t FTI_ULNG = 7;
fti_id_t FTI_SFLT = 8;
fti_id_t FTI_DBLE = 9;
fti_id_t FTI_LDBE = 10;
}

namespace {

using diapause::drop_in::FtiRun;

// The interface has no handle. It is never destroyed by the end of the process: a program that ends
// without FTI_Finalize has no MPI left to talk with.
std::unique_ptr<FtiRun>& run() {
  static auto* const only = new std::unique_ptr<FtiRun>;
  return *only;
}

// Returns the result of `call`, or `failure` if it throws or if there is no run.
template <class Result, class Call>
Result answer(Result failure, Call call) {
  if (run() == nullptr) {
    std::fprintf(stderr, "fti: FTI_Init must come first, and FTI_Finalize last\n");
    return failure;
  }
  try {
    return call(*run());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fti: %s\n", error.what());
  } catch (...) {
    std::fprintf(stderr, "fti: a defect\n");
  }
  return failure;
}

const char* text(const char* name) { return name == nullptr ? "" : name; }

// A head ends with the program, as its users expect, unless they say otherwise.
int serve_as_head(FtiRun& head) {
  head.serve();
  const bool stays = head.configuration().keeps_heads_alive;
  run().reset();
  if (stays) return FTI_HEAD;
  MPI_Finalize();
  std::exit(0);
}

int begin(const char* file, MPI_Comm comm) {
  run().reset();  // a program that begins twice gives up what it took before
  run() = std::make_unique<FtiRun>(text(file), comm);
  FTI_COMM_WORLD = run()->comm();
  if (run()->is_head()) return serve_as_head(*run());
  return run()->find() ? FTI_SCES : FTI_NREC;
}

// Returns the number of elements in so many dimensions.
uint64_t product_of(int dims, const int64_t* lengths) {
  if (dims < 0 || (dims > 0 && lengths == nullptr))
    throw std::runtime_error("the lengths of " + std::to_string(dims) + " dimensions are missing");
  uint64_t product = 1;
  for (int i = 0; i < dims; ++i) {
    if (lengths[i] < 0 ||
        __builtin_mul_overflow(product, static_cast<uint64_t>(lengths[i]), &product))
      throw std::runtime_error("a dimension of " + std::to_string(lengths[i]) + " elements");
  }
  return product;
}

// Returns the numbers of so many dimensions, as FTI_AddSubset and its like take them.
std::vector<uint64_t> numbers_of(int dims, const FTIT_hsize_t* numbers) {
  product_of(dims, numbers);  // throws if they cannot be used
  return std::vector<uint64_t>(numbers, numbers + dims);
}

std::string path_of(const FTIT_H5Group* group, const char* name) {
  const std::string folder = group == nullptr ? "" : group->fullName;
  const std::string path = folder + "/" + text(name);
  return path.substr(std::min(path.size(), path.find_first_not_of('/')));
}

void set_text(char* to, const char* from) { std::snprintf(to, FTI_BUFS, "%s", text(from)); }

}  // namespace

extern "C" {

int FTI_Init(const char* configFile, MPI_Comm globalComm) {
  try {
    return begin(configFile, globalComm);
  } catch (const diapause::drop_in::Failed& failed) {
    std::fprintf(stderr, "fti: %s\n", failed.what());
    return run() != nullptr && run()->configuration().failure != 0 ? FTI_NREC : FTI_NSCS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fti: %s\n", error.what());
  }
  return FTI_NSCS;
}

FTIT_allConfiguration FTI_GetConfig(const char* configFile, MPI_Comm) {
  try {
    return diapause::drop_in::tell_fti_configuration(text(configFile));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fti: FTI_GetConfig: %s\n", error.what());
  }
  FTIT_allConfiguration nothing{};
  nothing.configuration.ioMode = -1;
  return nothing;
}

int FTI_Status() { return run() == nullptr ? 0 : run()->status(); }

int FTI_Protect(int id, void* ptr, int64_t count, fti_id_t tid) {
  return answer(FTI_NSCS, [&](FtiRun& r) {
    r.protect(id, ptr, count, tid);
    return FTI_SCES;
  });
}

// FTI counts the dimension first that is contiguous in memory.
int FTI_SetAttribute(int id, FTIT_attribute attribute, FTIT_attributeFlag flag) {
  return answer(FTI_NSCS, [&](FtiRun& r) {
    auto& variable = r.variable(id);
    if ((flag & FTI_ATTRIBUTE_DIM) != 0) {
      const FTIT_dimension& dim = attribute.dim;
      const int most = sizeof dim.count / sizeof dim.count[0];
      if (dim.ndims < 0 || dim.ndims > most)
        throw std::runtime_error("an attribute of " + std::to_string(dim.ndims) + " dimensions");
      const std::vector<uint64_t> lengths = numbers_of(dim.ndims, dim.count);
      variable.lengths.assign(lengths.rbegin(), lengths.rend());
    }
    if ((flag & FTI_ATTRIBUTE_NAME) != 0)
      variable.label.assign(attribute.name, strnlen(attribute.name, sizeof attribute.name));
    return FTI_SCES;
  });
}

int FTI_setIDFromString(const char* name) {
  return answer(FTI_NSCS, [&](FtiRun& r) { return r.id_for(text(name)); });
}

int FTI_getIDFromString(const char* name) {
  return answer(-1, [&](FtiRun& r) { return r.id_of(text(name)); });
}

int FTI_Checkpoint(int id, int level) {
  return answer(FTI_NSCS, [&](FtiRun& r) { return r.checkpoint(id, level); });
}

int FTI_Snapshot() {
  if (run() == nullptr) return answer(FTI_NSCS, [](FtiRun&) { return FTI_NSCS; });
  const int failure = run()->status() == 0 ? FTI_NSCS : FTI_NREC;
  return answer(failure, [](FtiRun& r) { return r.snapshot(); });
}

int FTI_Recover() {
  return answer(FTI_NREC, [](FtiRun& r) {
    r.recover();
    return FTI_SCES;
  });
}

int FTI_RecoverVarInit() {
  return answer(FTI_NSCS, [](FtiRun& r) {
    r.begin_variables();
    return FTI_SCES;
  });
}

int FTI_RecoverVar(int id) {
  return answer(FTI_NREC, [&](FtiRun& r) {
    r.recover_variable(id);
    return FTI_SCES;
  });
}

int FTI_RecoverVarFinalize() {
  return answer(FTI_NSCS, [](FtiRun& r) {
    r.end_variables();
    return FTI_SCES;
  });
}

int64_t FTI_GetStoredSize(int id) {
  return answer(int64_t{0}, [&](FtiRun& r) { return static_cast<int64_t>(r.stored_bytes(id)); });
}

void* FTI_Realloc(int id, void* ptr) {
  return answer(ptr, [&](FtiRun& r) { return r.resize(id, ptr); });
}

int FTI_InitICP(int id, int level, bool activate) {
  return answer(FTI_NSCS, [&](FtiRun& r) {
    if (activate) r.begin_in_parts(id, level);
    return FTI_SCES;
  });
}

int FTI_AddVarICP(int varID) {
  return answer(FTI_NSCS, [&](FtiRun& r) {
    if (r.is_in_parts()) r.add_part(varID);
    return FTI_SCES;
  });
}

int FTI_FinalizeICP() {
  return answer(FTI_NSCS, [](FtiRun& r) {
    if (r.is_in_parts()) r.end_in_parts();
    return FTI_SCES;
  });
}

int FTI_BitFlip(int datasetID) {
  return answer(FTI_NSCS, [&](FtiRun& r) { return r.flip_bit(datasetID) ? FTI_SCES : FTI_NSCS; });
}

int FTI_GetStageDir(char* stageDir, int maxLen) {
  return answer(FTI_NSCS, [&](FtiRun& r) {
    const std::string folder = r.stage_directory();
    if (stageDir == nullptr || maxLen < 0 || folder.size() >= static_cast<size_t>(maxLen))
      return FTI_NSCS;
    std::snprintf(stageDir, static_cast<size_t>(maxLen), "%s", folder.c_str());
    return FTI_SCES;
  });
}

int FTI_SendFile(const char* lpath, const char* rpath) {
  return answer(FTI_NSCS, [&](FtiRun& r) { return r.send_file(text(lpath), text(rpath)); });
}

int FTI_GetStageStatus(int ID) {
  return answer(FTI_NSCS, [&](FtiRun& r) { return r.stage_status(ID); });
}

int FTI_InitType(fti_id_t* type, int size) {
  return answer(FTI_NSCS, [&](FtiRun& r) {
    if (type == nullptr) throw std::runtime_error("FTI_InitType: the place for the type is NULL");
    *type = r.types.add(size > 0 ? static_cast<uint64_t>(size) : 0);
    return FTI_SCES;
  });
}

fti_id_t FTI_InitCompositeType(const char*, size_t size, FTIT_H5Group*) {
  return answer(FTI_NSCS, [&](FtiRun& r) { return r.types.add(size); });
}

// A composite type is stored as its bytes: the fields are checked, and not remembered.
int FTI_AddScalarField(fti_id_t id, const char* name, fti_id_t fid, int64_t offset) {
  return FTI_AddVectorField(id, name, fid, offset, 0, nullptr);
}

int FTI_AddVectorField(fti_id_t id, const char*, fti_id_t tid, int64_t offset, int ndims,
                       int64_t* dim_sizes) {
  return answer(FTI_NSCS, [&](FtiRun& r) {
    const uint64_t bytes = r.types.get(tid).bytes * product_of(ndims, dim_sizes);
    const bool fits = offset >= 0 && static_cast<uint64_t>(offset) + bytes <= r.types.get(id).bytes;
    if (!fits) std::fprintf(stderr, "fti: a field lies outside of type %d\n", id);
    return fits ? FTI_SCES : FTI_NSCS;
  });
}

int FTI_InitGroup(FTIT_H5Group* h5group, const char* name, FTIT_H5Group* parent) {
  if (h5group == nullptr) return FTI_NSCS;
  set_text(h5group->fullName, ("/" + path_of(parent, name)).c_str());
  return FTI_RenameGroup(h5group, name);
}

int FTI_RenameGroup(FTIT_H5Group* h5group, const char* name) {
  if (h5group == nullptr) return FTI_NSCS;
  set_text(h5group->name, name);
  return FTI_SCES;
}

int FTI_DefineDataset(int id, int rank, int64_t* dimLength, const char* name,
                      FTIT_H5Group* h5group) {
  return answer(FTI_NSCS, [&](FtiRun& r) {
    auto& variable = r.variable(id);
    const uint64_t count = product_of(rank, dimLength);
    const bool fits = rank == 0 || count == variable.block.count;
    if (fits) {
      variable.lengths = numbers_of(rank, dimLength);
      variable.label = path_of(h5group, name);
    }
    if (!fits)
      std::fprintf(stderr,
                   "fti: variable %d has another number of elements than these dimensions\n", id);
    return fits ? FTI_SCES : FTI_NSCS;
  });
}

int FTI_DefineGlobalDataset(int id, int rank, FTIT_hsize_t* dimLength, const char* name,
                            FTIT_H5Group* h5group, fti_id_t tid) {
  return answer(FTI_NSCS, [&](FtiRun& r) {
    const auto& element = r.types.get(tid);
    r.datasets.define(
        id, {path_of(h5group, name), numbers_of(rank, dimLength), element.bytes, element.type});
    return FTI_SCES;
  });
}

int FTI_AddSubset(int id, int rank, FTIT_hsize_t* offset, FTIT_hsize_t* count, int did) {
  return answer(FTI_NSCS, [&](FtiRun& r) {
    r.variable(id);
    r.datasets.add(id, {did, {numbers_of(rank, offset), numbers_of(rank, count)}});
    return FTI_SCES;
  });
}

int FTI_UpdateGlobalDataset(int id, int rank, FTIT_hsize_t* dimLength) {
  return answer(FTI_NSCS, [&](FtiRun& r) {
    r.datasets.resize(id, numbers_of(rank, dimLength));
    return FTI_SCES;
  });
}

int FTI_UpdateSubset(int id, int rank, FTIT_hsize_t* offset, FTIT_hsize_t* count, int did) {
  return answer(FTI_NSCS, [&](FtiRun& r) {
    r.variable(id);
    r.datasets.move(id, {did, {numbers_of(rank, offset), numbers_of(rank, count)}});
    return FTI_SCES;
  });
}

int FTI_RecoverDatasetDimension(int did) {
  return answer(FTI_NSCS, [&](FtiRun& r) {
    r.recover_lengths(did);
    return FTI_SCES;
  });
}

FTIT_hsize_t* FTI_GetDatasetSpan(int did, int rank) {
  return answer(static_cast<FTIT_hsize_t*>(nullptr), [&](FtiRun& r) {
    auto& dataset = r.datasets.get(did);
    if (rank < 0 || static_cast<size_t>(rank) != dataset.lengths.size())
      throw std::runtime_error("global dataset " + std::to_string(did) + " has " +
                               std::to_string(dataset.lengths.size()) + " dimensions");
    dataset.told.assign(dataset.lengths.begin(), dataset.lengths.end());
    return dataset.told.data();
  });
}

int FTI_GetDatasetRank(int did) {
  return answer(FTI_NSCS,
                [&](FtiRun& r) { return static_cast<int>(r.datasets.get(did).lengths.size()); });
}

int FTI_Finalize() {
  const int status = answer(FTI_NSCS, [](FtiRun& r) {
    r.finish();
    return FTI_SCES;
  });
  run().reset();
  return status;
}

}  // extern "C"
