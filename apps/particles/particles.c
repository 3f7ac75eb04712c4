/* Particles in a channel that is cut into slabs, one for each rank. They follow a point that swings
 * from one end of the channel to the other, and change ranks on their way, so that a rank has
 * nearly all of them at one time and none at another. In each step every rank adds a particle, and
 * those that have lived long enough vanish. The region that holds them grows and shrinks from
 * checkpoint to checkpoint, differently on every rank.
 *
 * particles NAME LIFETIME STEPS RESULT   A particle lives for LIFETIME steps on average. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diapause/diapause_mpi.h"

static const double kTimeStep = 0.01;
static const double kSwing = 400; /* steps from one end to the other and back */
static const char* const kRegion = "particles";

typedef struct {
  uint64_t id;
  int64_t dies_at; /* the first step that it does not live in */
  double place[2]; /* along the channel, from 0 to 1, and across it */
  double speed[2];
} Particle;

typedef struct {
  Particle* items;
  uint64_t count, room;
} Particles;

typedef struct {
  diapause_t* diapause;
  MPI_Comm comm; /* the ranks that compute */
  int rank, ranks;
  int64_t lifetime;
  int64_t step;
  Particles here, down, up; /* those of this rank, and those that leave it for its neighbours */
} Channel;

static void check(int status) {
  if (status == DIAPAUSE_OK) return;
  fprintf(stderr, "particles: %s\n", diapause_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* A checkpoint under way may still read the particles of this rank: they are unprotected, which
 * waits for that, before their memory moves. The next checkpoint protects them again. */
static void make_room(Channel* channel, Particles* particles, uint64_t wanted) {
  if (wanted <= particles->room) return;
  if (particles == &channel->here) {
    const int status = diapause_unprotect(channel->diapause, kRegion);
    if (status != DIAPAUSE_ERR_NOT_FOUND) check(status); /* it is not protected yet */
  }
  particles->room = 2 * wanted;
  particles->items = realloc(particles->items, particles->room * sizeof *particles->items);
  if (particles->items == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
}

static void add(Channel* channel, Particles* particles, Particle particle) {
  make_room(channel, particles, particles->count + 1);
  particles->items[particles->count++] = particle;
}

/* A number from 0 to 1 that depends on both arguments alone, so that a generator has no state to be
 * kept. */
static double chance(uint64_t id, uint64_t which) {
  uint64_t bits = (id * 4 + which) * 0x9e3779b97f4a7c15u;
  bits = (bits ^ (bits >> 32)) * 0xd6e8feb86659fd93u;
  bits = (bits ^ (bits >> 32)) * 0xd6e8feb86659fd93u;
  return (double)(bits >> 11) / 9007199254740992.0;
}

static Particle new_particle(const Channel* channel) {
  const uint64_t id = (uint64_t)channel->step * (uint64_t)channel->ranks + (uint64_t)channel->rank;
  Particle particle = {.id = id};
  particle.dies_at = channel->step + 1 + (int64_t)(2 * chance(id, 0) * (double)channel->lifetime);
  particle.place[0] = (channel->rank + chance(id, 1)) / channel->ranks;
  particle.place[1] = chance(id, 2);
  particle.speed[1] = chance(id, 3) - 0.5;
  return particle;
}

/* Along the channel it follows the swinging point, and across it the middle of the particles of its
 * rank. */
static void move(Particle* particle, int64_t step, double middle) {
  const double swing = 0.5 + 0.5 * sin(6.283185307179586 * (double)step / kSwing);
  particle->speed[0] = 0.97 * particle->speed[0] + kTimeStep * (swing - particle->place[0]);
  particle->speed[1] = 0.97 * particle->speed[1] + kTimeStep * (middle - particle->place[1]);
  particle->place[0] += kTimeStep * 8 * particle->speed[0];
  particle->place[1] += kTimeStep * 8 * particle->speed[1];
}

static double middle_of(const Particles* particles) {
  double sum = 0;
  for (uint64_t i = 0; i < particles->count; ++i) sum += particles->items[i].place[1];
  return particles->count > 0 ? sum / (double)particles->count : 0;
}

/* The slab that a place is in; what is beyond an end of the channel belongs to the last slab there.
 */
static int owner_of(const Channel* channel, const Particle* particle) {
  const int slab = (int)floor(particle->place[0] * channel->ranks);
  if (slab < 0) return 0;
  return slab < channel->ranks ? slab : channel->ranks - 1;
}

/* Moves what lives, and sorts out what leaves; the others stay in their order. */
static void move_all(Channel* channel) {
  const double middle = middle_of(&channel->here);
  uint64_t kept = 0;
  channel->down.count = channel->up.count = 0;
  for (uint64_t i = 0; i < channel->here.count; ++i) {
    Particle particle = channel->here.items[i];
    if (channel->step >= particle.dies_at) continue;
    move(&particle, channel->step, middle);
    const int owner = owner_of(channel, &particle);
    if (owner < channel->rank) add(channel, &channel->down, particle);
    if (owner > channel->rank) add(channel, &channel->up, particle);
    if (owner == channel->rank) channel->here.items[kept++] = particle;
  }
  channel->here.count = kept;
}

/* Sends particles to one neighbour, and adds what the other one sends. */
static void pass_on(Channel* channel, const Particles* leaving, int to, int from) {
  uint64_t coming = 0;
  MPI_Sendrecv(&leaving->count, 1, MPI_UINT64_T, to, 0, &coming, 1, MPI_UINT64_T, from, 0,
               channel->comm, MPI_STATUS_IGNORE);
  Particles* const here = &channel->here;
  make_room(channel, here, here->count + coming);
  MPI_Sendrecv(leaving->items, (int)(leaving->count * sizeof(Particle)), MPI_BYTE, to, 1,
               here->items + here->count, (int)(coming * sizeof(Particle)), MPI_BYTE, from, 1,
               channel->comm, MPI_STATUS_IGNORE);
  here->count += coming;
}

static void advance(Channel* channel) {
  const int below = channel->rank > 0 ? channel->rank - 1 : MPI_PROC_NULL;
  const int above = channel->rank + 1 < channel->ranks ? channel->rank + 1 : MPI_PROC_NULL;
  add(channel, &channel->here, new_particle(channel));
  move_all(channel);
  pass_on(channel, &channel->down, below, above);
  pass_on(channel, &channel->up, above, below);
  ++channel->step;
}

/* Called by every checkpoint that is taken: as many particles as there are now, where they are now.
 */
static int protect_particles(void* context) {
  const Channel* const channel = context;
  return diapause_protect_bytes(channel->diapause, kRegion, channel->here.items,
                                channel->here.count, sizeof(Particle));
}

/* Asks how many particles this rank had, makes room for them, and restores them. Returns without a
 * checkpoint, too. */
static void go_on_from_checkpoint(Channel* channel) {
  diapause_restart_info restart;
  diapause_region_info stored;
  const int begun = diapause_restart_begin(channel->diapause, DIAPAUSE_NEWEST, &restart);
  if (begun == DIAPAUSE_ERR_NOT_FOUND) return;
  check(begun);
  check(diapause_stored_find(channel->diapause, kRegion, &stored));
  make_room(channel, &channel->here, stored.count);
  channel->here.count = stored.count;
  check(protect_particles(channel));
  check(diapause_restore(channel->diapause, NULL, 0));
  check(diapause_restart_end(channel->diapause));
  channel->step = (int64_t)restart.version; /* our versions are numbers of steps */
}

/* Writes the particles of all ranks, in the order of the ranks. */
static void write_result(const Channel* channel, const char* path) {
  const uint64_t bytes = channel->here.count * sizeof(Particle);
  uint64_t before = 0;
  MPI_Exscan(&bytes, &before, 1, MPI_UINT64_T, MPI_SUM, channel->comm);
  if (channel->rank == 0) before = 0; /* MPI leaves it undefined there */
  MPI_File file;
  int is_written = MPI_File_open(channel->comm, path, MPI_MODE_CREATE | MPI_MODE_WRONLY,
                                 MPI_INFO_NULL, &file) == MPI_SUCCESS;
  if (is_written) {
    is_written = MPI_File_write_at_all(file, (MPI_Offset)before, channel->here.items, (int)bytes,
                                       MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    is_written = MPI_File_close(&file) == MPI_SUCCESS && is_written;
  }
  if (is_written) return;
  fprintf(stderr, "particles: %s cannot be written\n", path);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static int run(Channel* channel, int64_t steps, const char* result) {
  go_on_from_checkpoint(channel);
  check(diapause_on_capture(channel->diapause, protect_particles, channel));
  int must_stop = 0;
  while (channel->step < steps && !must_stop) {
    advance(channel);
    check(diapause_snapshot(channel->diapause, (uint64_t)channel->step, NULL));
    must_stop = diapause_should_stop(channel->diapause, NULL) != DIAPAUSE_GO_ON;
  }
  if (!must_stop) write_result(channel, result);
  return must_stop;
}

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: particles NAME LIFETIME STEPS RESULT\n");
    return 2;
  }
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  Channel channel = {.lifetime = atoll(argv[2])};
  check(diapause_mpi_open(MPI_COMM_WORLD, argv[1], NULL, &channel.diapause));
  check(diapause_comm(channel.diapause, &channel.comm)); /* without a dedicated rank */
  int must_stop = 0;
  if (channel.comm != MPI_COMM_NULL) {
    MPI_Comm_rank(channel.comm, &channel.rank);
    MPI_Comm_size(channel.comm, &channel.ranks);
    must_stop = run(&channel, atoll(argv[3]), argv[4]);
  }
  check(must_stop ? diapause_close(channel.diapause) : diapause_finish(channel.diapause));
  free(channel.here.items);
  free(channel.down.items);
  free(channel.up.items);
  MPI_Finalize();
  return 0;
}
