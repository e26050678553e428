# xseg - builds everything into build/, tests it, installs it. `make help` lists what can be made.
#
# Sources are found by wildcard: a new file, peer, tool or test needs no line here. Where a folder ends
# with a slash, the rooms in it, folders of one more level, belong to it.
#   xtypes/*.c xseg/             build/libxseg.a, and build/lib/libxseg.so.ABI, which shows what
#                                xseg/libxseg.map says
#   peers/common/                build/libpeer.a
#   peers/alog/                  build/libalog.a
#   peers/NAME/                  build/libNAME.a, and with NAME_main.c build/bin/NAME
#   peers/host/*.c               build/bin/xseg-host
#   tools/xseg/                  build/bin/xseg
#   bench/xbench/                build/bin/xbench
#   bench/limits|lru/*.c         build/bin/bench-limit, bench-lru
#   bench/pagecache/*.c          build/bin/bench-pagecache
#   bench/scale/*.c              build/bin/bench-scale
#   bench/common/*.c             what several of these programs have in common
#   bench/fio/engine.c           build/lib/fio-xseg.so, where `make deps` has fetched fio's headers
#   bench/rivals/*.c             build/bin/bench-rival-xseg, -memcached; and -redis, -leveldb,
#                                -rocksdb, -lmdb where their headers are there
#   tools/nbdkit/plugin.c, exports.c, lanes.c, writers.c
#                                build/lib/nbdkit-xseg-plugin.so, where nbdkit's header is
#                                (nbdkit-plugin-dev)
#   tools/nbdkit/guard*.c        build/lib/xseg-nbdkit-guard.so
#   tests/unit/*/NAME_test.c     build/tests/NAME_test; tests/rig/ helps them all
#   tests/sim/**.c               build/tests/sim
#   tests/tools/NAME.c           build/tests/NAME
#   tests/fuzz/NAME.c            build/tests/fuzz_NAME, where NAME has a folder in tests/fuzz/corpus
#                                (what has none helps them all)
#
# Nothing is run while this file is read, so that `make deps` works on a machine without a compiler.
# CC, CPPFLAGS, CFLAGS, LDFLAGS, BUILD and EXTRA_CFLAGS may be given; V=1 shows the commands.
# Programs that data goes through are optimized as wholes when they are linked (a tenth of a hit's
# instructions), but for special builds, with EXTRA_CFLAGS, and by clang, whose objects only its own
# linker would know then; LTO= does without.

VERSION = 0.1.0
# Of libxseg.so: another number when programs that were linked with the last one would not run with
# this one.
ABI	= 1

BUILD  ?= build
# By one name, however it is given: the dependencies that the compiler writes are of that name.
override BUILD := $(subst $(CURDIR)/,,$(BUILD))
PREFIX ?= /usr/local
# Not every shell does that behind a '='.
override PREFIX := $(patsubst ~/%,$(HOME)/%,$(PREFIX))
CFLAGS ?= -O2 -g
ifeq ($(origin CC),default)
CC = gcc
endif

WARNINGS = -Wall -Wextra -Wshadow -Wmissing-prototypes -Werror=implicit
# gcc's own choice for up to 8 KiB are `rep movsq` and `rep stosq`, which take long to begin.
STRINGS	 = $(if $(findstring clang,$(CC)),,$(if $(findstring x86_64,$(MAKE_HOST)),\
	   -mmemcpy-strategy=unrolled_loop:32:noalign$(comma)libcall:-1:noalign \
	   -mmemset-strategy=unrolled_loop:32:noalign$(comma)libcall:-1:noalign))
comma	 = ,
FLAGS	 = -std=gnu11 $(WARNINGS) -D_GNU_SOURCE -DXSEG_VERSION=\"$(VERSION)\" -I. $(SOSD_FLAGS) \
	   $(STRINGS) $(CPPFLAGS) $(CFLAGS) $(EXTRA_CFLAGS)
LTO	?= $(if $(EXTRA_CFLAGS)$(findstring clang,$(CC)),,-flto=auto)
LIBS	 = -Wl,--as-needed -lpthread -laio -ljansson -linih -lxxhash -lsodium $(SOSD_LIBS) -lm

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-5s %s\n' $(1) $(2);)
# Sub-makes use every core, unless the caller chose a number of jobs.
JOBS = $(if $(filter -j%,$(MAKEFLAGS)),,-j$$(nproc))

# ---- what there is ------------------------------------------------------------------------------

# Sources of the folder $(1), and of the rooms in it.
sources = $(sort $(wildcard $(1)/*.c $(1)/*/*.c))
# Objects of the sources $(1).
objs = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

# sosd needs librados; without its header it is left out.
RADOS_HEADER ?= /usr/include/rados/librados.h
ifneq ($(wildcard $(RADOS_HEADER)),)
HAVE_SOSD  = yes
SOSD_FLAGS = -DXSEG_HAVE_SOSD=1
SOSD_LIBS  = -lrados
endif

PEERS := $(notdir $(patsubst %/,%,$(wildcard peers/*/)))
PEERS := $(filter-out common alog host $(if $(HAVE_SOSD),,sosd),$(PEERS))

XSEG_SRC := $(wildcard xtypes/*.c) $(call sources,xseg)
COMMON_SRC := $(call sources,peers/common)
ALOG_SRC := $(call sources,peers/alog)
# The program of a peer: not memcached's own name.
program = $(BUILD)/bin/$(patsubst memcached,xseg-memcached,$(1))

PEER_SRC := $(foreach p,$(PEERS),$(call sources,peers/$(p)))
HOST_SRC := $(wildcard peers/host/*.c)
PLAIN_OBJ := $(HOST_SRC:%.c=$(BUILD)/plain/%.o)
TOOL_SRC := $(call sources,tools/xseg)
XBENCH_SRC := $(call sources,bench/xbench)
BENCH_SRC := $(wildcard bench/common/*.c bench/limits/*.c bench/lru/*.c bench/pagecache/*.c \
			bench/scale/*.c bench/rivals/*.c)
SIM_SRC := $(wildcard tests/sim/*.c tests/sim/kv/*.c)
TEST_TOOL_SRC := $(wildcard tests/tools/*.c)
FUZZ_NAMES := $(notdir $(patsubst %/,%,$(wildcard tests/fuzz/corpus/*/)))
FUZZ_SRC := $(wildcard $(FUZZ_NAMES:%=tests/fuzz/%.c))
FUZZ_MAINS := tests/fuzz/drive.c tests/fuzz/entry.c
FUZZ_MAIN := $(filter %/$(if $(LIBFUZZER),entry,drive).c,$(FUZZ_MAINS))
SCRIBBLE_SRC := $(wildcard tests/fuzz/scribble.c)
FUZZ_HELP_SRC := $(filter-out $(FUZZ_SRC) $(FUZZ_MAINS) $(SCRIBBLE_SRC),$(wildcard tests/fuzz/*.c))
# Tests of sosd are left out with it.
UNIT_SRC := $(filter-out $(if $(HAVE_SOSD),,tests/unit/stores/sosd%),$(wildcard tests/unit/*/*_test.c))
UNIT_HELP_SRC := $(wildcard tests/rig/*.c)

ALL_SRC := $(XSEG_SRC) $(COMMON_SRC) $(ALOG_SRC) $(PEER_SRC) $(HOST_SRC) $(TOOL_SRC) $(XBENCH_SRC) \
	   $(BENCH_SRC) $(SIM_SRC) $(TEST_TOOL_SRC) $(FUZZ_SRC) $(FUZZ_HELP_SRC) $(FUZZ_MAIN) \
	   $(SCRIBBLE_SRC) $(UNIT_SRC) $(UNIT_HELP_SRC)
STYLED = $(wildcard $(foreach d,xtypes xseg xseg/* peers/* peers/*/* tools/* tools/*/* bench/* bench/*/* \
	tests/* tests/*/*,$(d)/*.c $(d)/*.h))

LIBXSEG := $(BUILD)/libxseg.a
SHARED := $(BUILD)/lib/libxseg.so.$(ABI)
LIBPEER := $(BUILD)/libpeer.a
LIBALOG := $(BUILD)/libalog.a
LIBKINDS := $(foreach p,$(PEERS),$(BUILD)/lib$(p).a)
BASE := $(LIBALOG) $(LIBPEER) $(LIBXSEG)

# fio's engine is built with fio's own headers (bench/fio/headers.sh), and is run by a fio that
# knows nothing of sanitizers.
FIO_DIR ?= build/fio
ENGINE := $(if $(SAN),,$(if $(wildcard $(FIO_DIR)/src/config-host.h),$(BUILD)/lib/fio-xseg.so))

# bench-scale counts nothing without it.
CALLGRIND_HEADER ?= /usr/include/valgrind/callgrind.h

# nbdkit's plug-in needs its header; without it, it is left out, and `xseg export` says so. nbdkit
# knows nothing of sanitizers either: tests have it load the runtime (tests/lib/nbdkit.sh).
NBDKIT_HEADER ?= /usr/include/nbdkit-plugin.h
PLUGIN := $(if $(wildcard $(NBDKIT_HEADER)),$(BUILD)/lib/nbdkit-xseg-plugin.so)
GUARD := $(BUILD)/lib/xseg-nbdkit-guard.so

# Of the rivals, those whose headers are there.
RIVAL_LIBS := $(foreach h,leveldb/c rocksdb/c lmdb,$(if $(wildcard /usr/include/$(h).h),$(h:%/c=%)))
RIVALS := xseg memcached $(if $(wildcard /usr/include/hiredis/hiredis.h),redis) $(RIVAL_LIBS)

BIN := $(foreach p,$(PEERS),$(call program,$(p))) $(addprefix $(BUILD)/bin/,xseg-host xseg xbench)
BENCH := $(BUILD)/bin/bench-limit $(BUILD)/bin/bench-lru $(BUILD)/bin/bench-scale \
	 $(BUILD)/bin/bench-pagecache $(RIVALS:%=$(BUILD)/bin/bench-rival-%)
UNIT := $(foreach s,$(UNIT_SRC),$(BUILD)/tests/$(basename $(notdir $(s))))
TEST_TOOLS := $(patsubst tests/tools/%.c,$(BUILD)/tests/%,$(TEST_TOOL_SRC))
TESTS := $(UNIT) $(BUILD)/tests/sim $(TEST_TOOLS) \
	 $(SCRIBBLE_SRC:tests/fuzz/%.c=$(BUILD)/tests/%)
FUZZ := $(patsubst tests/fuzz/%.c,$(BUILD)/tests/fuzz_%,$(FUZZ_SRC))

# Tests are linked from the same objects as they are: fat ones are good for both.
ifneq ($(LTO),)
FAST := $(filter-out %/xseg,$(BIN)) $(BUILD)/bin/bench-scale
FAST_SRC := $(XSEG_SRC) $(COMMON_SRC) $(ALOG_SRC) $(PEER_SRC) $(HOST_SRC) $(XBENCH_SRC) \
	    $(filter bench/scale/%,$(BENCH_SRC))
$(call objs,$(FAST_SRC)): private FLAGS += $(LTO) -ffat-lto-objects
$(PLAIN_OBJ): private FLAGS += $(LTO) -ffat-lto-objects
$(FAST) $(BUILD)/plain/xseg-host: private LDFLAGS += $(LTO)
$(filter-out $(FAST),$(BIN) $(BENCH)) $(TESTS) $(FUZZ): private LDFLAGS += -fno-lto
endif

# ---- building -----------------------------------------------------------------------------------

# Why sosd is left out: in the words of tests/lib/deps.sh, if that has tried.
NO_SOSD = $(shell sed 's/ (see above)//' $(WITHOUT_CEPH) 2>/dev/null || echo librados-dev is not there)
define LEFT_OUT
$(if $(HAVE_SOSD),,@echo '  sosd is left out: $(NO_SOSD) (`make deps` $(if $(wildcard $(WITHOUT_CEPH)),tries again,installs it))')
$(if $(PLUGIN),,@echo '  the plug-in for nbdkit is left out: nbdkit-plugin-dev is not there (`make deps` installs it)')
endef

.PHONY: all left-out programs libs tests
all: programs libs tests ## everything, into build/bin, build/lib and build/tests
	$(LEFT_OUT)
left-out:
	$(LEFT_OUT)
libs: $(LIBXSEG) $(SHARED) $(ENGINE) $(PLUGIN) $(GUARD)
programs: $(LIBXSEG) $(LIBPEER) $(LIBKINDS) $(BIN) $(BENCH) ## what `all` makes, without the tests
tests: $(TESTS) $(FUZZ)

# Writes the text $(1) to the target, and touches it only when the text is another one.
define record
@mkdir -p $(@D)
@printf '%s\n' '$(subst ','\'',$(1))' | cmp -s - $@ || printf '%s\n' '$(subst ','\'',$(1))' >$@
endef

# Other flags rebuild everything, and so does a header that bench-scale can be built without; a file
# that came or went makes archives and programs again.
.PHONY: FORCE
$(BUILD)/flags: FORCE
	$(call record,$(CC) $(FLAGS) $(LTO) $(LDFLAGS) $(LIBS) $(wildcard $(CALLGRIND_HEADER)))
$(BUILD)/sources: FORCE
	$(call record,$(sort $(ALL_SRC)))

# A first build says at once which packages it lacks; the compiler's word is the last.
$(BUILD)/packages-build $(BUILD)/packages-unit: $(BUILD)/packages-%:
	@mkdir -p $(@D)
	@tests/lib/deps.sh --list $* && touch $@ || true

$(BUILD)/obj/%.o: %.c $(BUILD)/flags | $(BUILD)/packages-build
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(FLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/pic/%.o: %.c $(BUILD)/flags | $(BUILD)/packages-build
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(FLAGS) -fPIC -MMD -MP -c -o $@ $<

# q, not r: two folders may have files of the same name.
define archive
@mkdir -p $(@D)
@rm -f $@
$(call say,AR,$@)
$(Q)$(AR) qcs $@ $(filter %.o,$^)
endef

define link
@mkdir -p $(@D)
$(call say,LINK,$@)
$(Q)$(CC) $(FLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) \
	-Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LIBS)
endef

$(LIBXSEG): $(call objs,$(XSEG_SRC)) $(BUILD)/sources
	$(archive)
# Of xtypes it has what libxseg needs itself, and what its headers show.
PIC := $(patsubst %.c,$(BUILD)/pic/%.o,$(XSEG_SRC))
ifneq ($(LTO),)
$(PIC): private FLAGS += $(LTO) -ffat-lto-objects
$(SHARED) $(BUILD)/lib/fio-xseg.so $(BUILD)/lib/nbdkit-xseg-plugin.so: private LDFLAGS += $(LTO)
endif
$(BUILD)/pic/libxtypes.a: $(filter $(BUILD)/pic/xtypes/%,$(PIC)) $(BUILD)/sources
	$(archive)
$(SHARED): $(filter $(BUILD)/pic/xseg/%,$(PIC)) $(BUILD)/pic/xtypes/xhist.o \
		$(BUILD)/pic/libxtypes.a xseg/libxseg.map $(BUILD)/sources
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(FLAGS) $(LDFLAGS) -shared -Wl,-soname,$(@F) \
		-Wl,--version-script=xseg/libxseg.map -Wl,--no-undefined -o $@ \
		$(filter %.o %.a,$^) $(LIBS)
	$(Q)ln -sf $(@F) $(@D)/libxseg.so
# It has the library in itself: fio need not find it.
$(BUILD)/pic/bench/fio/engine.o: private FLAGS += -isystem $(FIO_DIR)/src \
		-include $(FIO_DIR)/src/config-host.h -DBITS_PER_LONG=64
$(BUILD)/pic/bench/fio/engine.o: $(FIO_DIR)/src/config-host.h
$(BUILD)/lib/fio-xseg.so: $(BUILD)/pic/bench/fio/engine.o $(filter $(BUILD)/pic/xseg/%,$(PIC)) \
		$(BUILD)/pic/libxtypes.a bench/fio/engine.map $(BUILD)/sources
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(FLAGS) $(LDFLAGS) -shared -Wl,--version-script=bench/fio/engine.map -o $@ \
		$(filter %.o %.a,$^) -Wl,--as-needed -lpthread
# This one too, so that an nbdkit of any place finds it.
PLUGIN_OBJ := $(addprefix $(BUILD)/pic/tools/nbdkit/,plugin.o exports.o lanes.o writers.o)
$(BUILD)/lib/nbdkit-xseg-plugin.so: $(PLUGIN_OBJ) \
		$(filter $(BUILD)/pic/xseg/%,$(PIC)) $(BUILD)/pic/libxtypes.a \
		tools/nbdkit/plugin.map $(BUILD)/sources
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(FLAGS) $(LDFLAGS) -shared -Wl,--version-script=tools/nbdkit/plugin.map -o $@ \
		$(filter %.o %.a,$^) -Wl,--as-needed -lpthread
# Without a sanitizer: it may be preloaded before a sanitizer's runtime is.
GUARD_OBJ := $(addprefix $(BUILD)/pic/tools/nbdkit/,guard.o guard_requests.o)
$(GUARD_OBJ) $(GUARD): private FLAGS += -fno-sanitize=all
$(GUARD): $(GUARD_OBJ) tools/nbdkit/guard.map $(BUILD)/sources
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(FLAGS) $(LDFLAGS) -shared -Wl,--version-script=tools/nbdkit/guard.map \
		-Wl,--no-undefined -o $@ $(filter %.o,$^) -lpthread
$(LIBPEER): $(call objs,$(COMMON_SRC)) $(BUILD)/sources
	$(archive)
$(LIBALOG): $(call objs,$(ALOG_SRC)) $(BUILD)/sources
	$(archive)

define peer_rules
$(BUILD)/lib$(1).a: $(call objs,$(filter-out %/$(1)_main.c,$(call sources,peers/$(1)))) \
		$(BUILD)/sources
	$$(archive)
$(call program,$(1)): $(BUILD)/obj/peers/$(1)/$(1)_main.o $(BUILD)/lib$(1).a $(BASE) $(BUILD)/sources
	$$(link)
endef
$(foreach p,$(PEERS),$(eval $(call peer_rules,$(p))))

# One program of one source and all archives.
define test_rule
$(BUILD)/tests/$(basename $(notdir $(1))): $(call objs,$(1)) $(2) $(LIBKINDS) $(BASE) \
		$(BUILD)/sources
	$$(link)
endef
$(foreach s,$(TEST_TOOL_SRC),$(eval $(call test_rule,$(s))))
$(call objs,$(UNIT_SRC) $(UNIT_HELP_SRC)): | $(BUILD)/packages-unit
$(UNIT): private LIBS := -Wl,--as-needed -lcmocka $(LIBS)
$(foreach s,$(UNIT_SRC),$(eval $(call test_rule,$(s),$(BUILD)/libunit.a)))
$(BUILD)/libunit.a: $(call objs,$(UNIT_HELP_SRC)) $(BUILD)/sources
	$(archive)

$(BUILD)/bin/xseg-host: $(call objs,$(HOST_SRC)) $(LIBKINDS) $(BASE) $(BUILD)/sources
	$(link)
# The same without sosd, for a package that does not need Ceph's libraries.
$(PLAIN_OBJ): private SOSD_FLAGS =
$(PLAIN_OBJ): $(BUILD)/plain/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(FLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/plain/xseg-host: private SOSD_LIBS =
$(BUILD)/plain/xseg-host: $(PLAIN_OBJ) $(filter-out %/libsosd.a,$(LIBKINDS)) $(BASE) $(BUILD)/sources
	$(link)
$(BUILD)/bin/xseg: $(call objs,$(TOOL_SRC)) $(BASE) $(BUILD)/sources
	$(link)
$(BUILD)/bin/xbench: $(call objs,$(XBENCH_SRC)) $(BASE) $(BUILD)/sources
	$(link)
BENCH_COMMON := $(call objs,$(wildcard bench/common/*.c))
$(BUILD)/bin/bench-limit: $(call objs,$(wildcard bench/limits/*.c)) $(BENCH_COMMON) $(BASE) $(BUILD)/sources
	$(link)
$(BUILD)/bin/bench-scale: $(call objs,$(wildcard bench/scale/*.c)) $(BENCH_COMMON) $(LIBKINDS) \
		$(BASE) $(BUILD)/sources
	$(link)
RIVAL := $(BUILD)/obj/bench/rivals/rival
RIVAL_DRIVER := $(RIVAL).o $(RIVAL)_value.o $(RIVAL)_work.o $(BENCH_COMMON)
$(BUILD)/bin/bench-rival-redis: private LIBS := -lhiredis $(LIBS)
$(BUILD)/bin/bench-rival-rocksdb: private LIBS := -lrocksdb $(LIBS)
$(BUILD)/bin/bench-rival-leveldb: private LIBS := -lleveldb $(LIBS)
$(BUILD)/bin/bench-rival-lmdb: private LIBS := -llmdb $(LIBS)
$(BUILD)/bin/bench-rival-xseg: $(RIVAL_DRIVER) $(RIVAL)_xseg.o $(BASE) $(BUILD)/sources
	$(link)
$(BUILD)/bin/bench-rival-memcached $(BUILD)/bin/bench-rival-redis: \
  $(BUILD)/bin/bench-rival-%: $(RIVAL_DRIVER) $(RIVAL)_socket.o $(RIVAL)_%.o $(BASE) $(BUILD)/sources
	$(link)
$(RIVAL_LIBS:%=$(BUILD)/bin/bench-rival-%): \
  $(BUILD)/bin/bench-rival-%: $(RIVAL_DRIVER) $(RIVAL)_lib.o $(RIVAL)_%.o $(BASE) $(BUILD)/sources
	$(link)
$(BUILD)/bin/bench-pagecache: $(call objs,$(wildcard bench/pagecache/*.c)) $(BENCH_COMMON) $(BASE) \
		$(BUILD)/sources
	$(link)
$(BUILD)/bin/bench-lru: $(call objs,$(wildcard bench/lru/*.c)) $(BASE) $(BUILD)/sources
	$(link)
# A fuzz program has libFuzzer's main, or one that plays the corpus.
$(FUZZ): private LDFLAGS += $(if $(LIBFUZZER),-fsanitize=fuzzer)
# In this one bytes change when they were copied.
$(BUILD)/tests/fuzz_values: private LDFLAGS += -Wl,--wrap=xseg_req_read_data
$(BUILD)/tests/fuzz_memcached: private LDFLAGS += -Wl,--wrap=xseg_kv_submit \
	-Wl,--wrap=xseg_kv_data -Wl,--wrap=xseg_kv_release
$(FUZZ): $(BUILD)/tests/fuzz_%: $(BUILD)/obj/tests/fuzz/%.o \
		$(call objs,$(FUZZ_HELP_SRC) $(FUZZ_MAIN)) $(LIBKINDS) $(BASE) $(BUILD)/sources
	$(link)
$(BUILD)/tests/scribble: $(call objs,$(SCRIBBLE_SRC) $(FUZZ_HELP_SRC)) $(LIBKINDS) $(BASE) \
		$(BUILD)/sources
	$(link)
# The simulator kills peers in the middle of a callback, at these calls (tests/sim/cut.c).
comma := ,
SIM_WRAPS = xseg_req_start xseg_req_apply xseg_req_answer xseg_req_free xseg_req_submit \
	    xseg_req_forward xseg_req_lend xseg_req_pass_loans xseg_req_exchange xseg_port_flush \
	    xseg_page_owner_set xseg_page_owner_swap xseg_pages_take xseg_pages_give bucket_set \
	    bucket_set_at bucket_leave xs_offer_answer xs_req_accept xs_req_take xs_bell_ring \
	    xs_lock xs_lock_all xs_lock_try xs_unlock xseg_page peer_port_kick xseg_plug_let_go \
	    xseg_plug_settle xseg_turn_hold xseg_turn_mind xseg_plug_call xseg_plug_claim \
	    xseg_plug_switch xworkq_run xseg_req_note_set xseg_req_write_data kvd_index_put \
	    kvd_index_expect kvd_index_show \
	    io_send tail_publish tail_open_page doubt_note flush_stable getrandom alog_create
$(BUILD)/tests/sim: private LDFLAGS += $(addprefix -Wl$(comma)--wrap=,$(SIM_WRAPS))
# These are linked with the rooms of xbench that they test.
$(BUILD)/tests/xbench_keys_test $(BUILD)/tests/xbench_keys_random_test \
  $(BUILD)/tests/xbench_value_test: \
  $(call objs,$(filter bench/xbench/plan/% bench/xbench/oracle/%,$(XBENCH_SRC)))
# This one is linked with a file of the command.
$(BUILD)/tests/route_plan_test: $(BUILD)/obj/tools/xseg/base/route_plan.o
$(BUILD)/tests/start_log_test: $(BUILD)/obj/tools/xseg/base/start_log.o
# This one is linked with the oracle of the simulator.
$(BUILD)/tests/kvd_versions_test: $(BUILD)/obj/tests/sim/kv/versions.o
# And this one with its scheduler.
$(BUILD)/tests/sim_sched_test: $(BUILD)/obj/tests/sim/sched.o
# In this one kvd is killed at these calls.
$(BUILD)/tests/kvd_large_test: private LDFLAGS += -Wl,--wrap=kvd_outcome -Wl,--wrap=large_forget
$(BUILD)/tests/kvd_paged_test: private LDFLAGS += -Wl,--wrap=kvd_index_expect -Wl,--wrap=kvd_index_show
# In this one they fail.
$(BUILD)/tests/kvd_loss_test: private LDFLAGS += -Wl,--wrap=alog_create -Wl,--wrap=index_begin
# These let allocations fail, and count them.
$(BUILD)/tests/start_memory_test: private LDFLAGS += -Wl,--wrap=malloc -Wl,--wrap=calloc
$(BUILD)/tests/client_memory_test $(BUILD)/tests/peers_memory_test: \
		private LDFLAGS += -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=aligned_alloc
$(BUILD)/tests/check_test: private LDFLAGS += -Wl,--wrap=calloc
# This one damages what was looked at.
$(BUILD)/tests/cached_adopt_test: private LDFLAGS += -Wl,--wrap=xseg_peer_adopt
# This one kills cached at these calls.
KILL_WRAPS = xseg_req_start xseg_req_apply xseg_req_answer xseg_req_lend xseg_req_free \
	     xseg_req_submit xseg_req_exchange xseg_page_owner_set xseg_page_owner_swap bucket_set \
	     bucket_set_at bucket_leave
$(BUILD)/tests/cached_kill_test: private LDFLAGS += $(addprefix -Wl$(comma)--wrap=,$(KILL_WRAPS))
# In these an idle port polls when it is kicked (tests/rig/cached_rig.c).
$(BUILD)/tests/cached_read_test $(BUILD)/tests/cached_resize_test: \
		private LDFLAGS += -Wl,--wrap=peer_port_kick
# This one is killed where a file gets its name.
$(BUILD)/tests/stack_edit_test: private LDFLAGS += -Wl,--wrap=rename
# This one moves the clock.
$(BUILD)/tests/clock_test: private LDFLAGS += -Wl,--wrap=clock_gettime
# In these no tick wakes a reactor, and in the last one nothing a client (tests/rig/no_tick.h).
$(BUILD)/tests/gate_test $(BUILD)/tests/reactor_test $(BUILD)/tests/wakes_test: \
		private LDFLAGS += -Wl,--wrap=xseg_bell_wait
$(BUILD)/tests/wakes_test: private LDFLAGS += -Wl,--wrap=xseg_port_wait
# This one lets a thread stand still where it begins to serve.
$(BUILD)/tests/reactors_test: private LDFLAGS += -Wl,--wrap=xseg_peer_serve
# And this one has filed's system calls fail.
FILED_WRAPS = io_setup io_destroy io_submit io_getevents pread pwrite openat mkdirat unlinkat \
	      ftruncate fallocate fstat faccessat fsync fdatasync fgetxattr fsetxattr
$(BUILD)/tests/filed_faults_test: private LDFLAGS += $(addprefix -Wl$(comma)--wrap=,$(FILED_WRAPS))
$(BUILD)/tests/sim: $(call objs,$(SIM_SRC)) $(LIBKINDS) $(BASE) $(BUILD)/sources
	$(link)

-include $(patsubst %.o,%.d,$(call objs,$(ALL_SRC)) $(PIC) $(PLAIN_OBJ) \
	   $(BUILD)/pic/bench/fio/engine.o $(PLUGIN_OBJ) $(GUARD_OBJ))

# ---- packages, tests, benchmarks ----------------------------------------------------------------

# sosd, its tests and its benchmark can be done without.
WITHOUT_CEPH = build/without-ceph
.PHONY: deps check check-long check-san kill-build asan tsan fuzz fuzz-build fuzz-programs demo \
		bench bench-deps tidy format format-check
deps: ## installs the Debian packages that are missing, after saying which and why
	@tests/lib/deps.sh build unit --optional check demo bench
	@rm -f $(WITHOUT_CEPH)
	@tests/lib/deps.sh --quiet --without=$(WITHOUT_CEPH) rados ceph
	@bench/fio/headers.sh $(FIO_DIR) || true

# T=PATTERN runs only the tests whose name matches.
check: ## the short tests, under 5 minutes on 2 cores; T=PATTERN for some of them
	@$(if $(T),,tests/lib/shm.sh 400 '`make check`')
	@tests/lib/deps.sh --quiet build check
	@tests/lib/deps.sh --quiet --without=$(WITHOUT_CEPH) rados ceph
	@$(if $(SAN),,bench/fio/headers.sh --once $(FIO_DIR) || true)
	@$(MAKE) --no-print-directory $(JOBS) all
	@$(if $(SAN),,$(MAKE) --no-print-directory $(JOBS) kill-build)
	@BUILD=$(BUILD) CC='$(CC)' tests/run.sh $(if $(T),'$(T)')

# The programs once more, with kill points (xtypes/xkill.h), for tests/system/kill_points.sh.
kill-build:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/kill \
		EXTRA_CFLAGS='$(EXTRA_CFLAGS) -DXSEG_KILL_POINTS' programs

check-long: ## the same with long simulations, crash loops, fuzzing, virtual machines
	@tests/lib/deps.sh --quiet build check long
	@LONG=1 $(MAKE) --no-print-directory check

asan: ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@SAN=asan $(MAKE) --no-print-directory BUILD=build-asan check \
		EXTRA_CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"

tsan: ## the tests under ThreadSanitizer
	@SAN=tsan $(MAKE) --no-print-directory BUILD=build-tsan check \
		EXTRA_CFLAGS="-fsanitize=thread -fno-omit-frame-pointer -Wno-tsan"

# Sanitized programs with libFuzzer's main, for tests/fuzz/run.sh; T=PATTERN runs only the programs
# whose name matches.
FUZZ_SECONDS ?= 60
FUZZ_BUILD   ?= build-fuzz
fuzz: ## fuzzes each program of tests/fuzz for FUZZ_SECONDS=60; needs clang
	@tests/lib/deps.sh --quiet build fuzz
	@$(MAKE) --no-print-directory fuzz-build
	@BUILD=$(FUZZ_BUILD) SECONDS_EACH=$(FUZZ_SECONDS) tests/fuzz/run.sh $(if $(T),'$(T)')
fuzz-build:
	@$(MAKE) --no-print-directory $(JOBS) BUILD=$(FUZZ_BUILD) CC=clang LIBFUZZER=1 fuzz-programs \
		EXTRA_CFLAGS="-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
fuzz-programs: $(FUZZ)

DEMO := $(addprefix $(BUILD)/bin/,volumed cached filed xseg-host xseg xbench)
demo: ## the main job on real data
	@tests/lib/shm.sh 520 '`make demo`'
	@tests/lib/deps.sh --quiet build demo
	@$(MAKE) --no-print-directory $(JOBS) $(DEMO)
	@BUILD=$(BUILD) bench/demo.sh

bench-deps: ## installs what `make bench` compares with, after saying what
	@tests/lib/deps.sh build bench rivals

bench: ## every benchmark, side by side in one run, into build/bench
	@tests/lib/deps.sh --quiet build bench
	@tests/lib/deps.sh --quiet --without=$(WITHOUT_CEPH) rados ceph
	@bench/fio/headers.sh --once $(FIO_DIR) || true
	@$(MAKE) --no-print-directory $(JOBS) programs libs $(TEST_TOOLS)
	@BUILD=$(BUILD) bench/run.sh

tidy: ## layers, lone headers, banned calls, manual against --help, static analysis, formatting
	@tests/lib/deps.sh --quiet build check tidy
	@$(MAKE) --no-print-directory $(JOBS) all
	@BUILD=$(BUILD) CC='$(CC)' STATIC=1 tests/run.sh ^tidy/; tests=$$?; \
		$(MAKE) --no-print-directory format-check && exit $$tests

format-check: ## whether the sources are formatted as .clang-format says
	@tests/lib/deps.sh --quiet tidy
	@tests/lib/format.sh --check $(STYLED)

format: ## formats the sources
	@tests/lib/deps.sh --quiet tidy
	@tests/lib/format.sh $(STYLED)

# ---- installing ---------------------------------------------------------------------------------

.PHONY: install uninstall deb clean help
BINDIR     ?= $(PREFIX)/bin
# Programs that `xseg` starts, and users do not. It finds them beside itself, or in
# ../libexec/xseg.
LIBEXECDIR ?= $(PREFIX)/libexec/xseg
COMMANDS = $(filter %/xseg %/xbench,$(BIN))
LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR     ?= $(PREFIX)/share/man
# Where a python3 of this machine looks for packages below PREFIX: only with PYTHONPATH, if nowhere.
FIND_PYTHONDIR = import site; print([d for d in site.getsitepackages() + [site.getusersitepackages()] \
	if d.startswith("$(PREFIX)/lib/")][0])
PYTHONDIR  ?= $(or $(shell for p in python3 /usr/bin/python3; do \
	$$p -I -c '$(FIND_PYTHONDIR)' 2>/dev/null && break; done),$(PREFIX)/lib/python3/dist-packages)
PYTHON = $(wildcard tools/python/xseg/*.py) tools/python/xseg/py.typed
# Completion of commands, where bash-completion and zsh look for it.
BASH_DIR ?= $(PREFIX)/share/bash-completion/completions
ZSH_DIR	 ?= $(PREFIX)/share/zsh/site-functions
PAGES = $(wildcard $(foreach s,1 3 5 7 8,docs/*.$(s) peers/*/*.$(s) tools/*/*.$(s) bench/*/*.$(s)))
PAGE_PATHS = $(foreach m,$(PAGES),man$(subst .,,$(suffix $(m)))/$(notdir $(m)))

define PC_FILE
prefix=$(PREFIX)
libdir=$(LIBDIR)
includedir=$(INCLUDEDIR)

Name: xseg
Description: A user-space block store of processes that talk through shared memory
Version: $(VERSION)
Cflags: -I$${includedir}
Libs: -L$${libdir} -lxseg
Libs.private: -lpthread
endef
export PC_FILE

# Prints the public headers: volume.h and kv.h, and the headers that they include.
headers = $(CC) $(FLAGS) -MM -MT '' xseg/volume.h xseg/kv.h | tr -d '\\:'
# Where an nbdkit of the same LIBDIR finds plug-ins by their names; `xseg export` finds it beside
# itself.
PLUGIN_DIR ?= $(LIBDIR)/nbdkit/plugins
# Where a fio that was built with its defaults looks for engines.
ENGINE_DIR ?= $(LIBDIR)/fio
SHARED_FILE = libxseg.so.$(ABI).$(VERSION)

# All that has DESTDIR or a directory in it is quoted: it may have spaces, and `uninstall` removes.
at = "$(DESTDIR)$(1)"
FOLDERS = $(call at,$(BINDIR)) $(call at,$(LIBEXECDIR)) $(call at,$(LIBDIR)/pkgconfig) \
	  $(call at,$(PYTHONDIR)/xseg) $(call at,$(BASH_DIR)) $(call at,$(ZSH_DIR)) \
	  $(if $(PLUGIN),$(call at,$(PLUGIN_DIR))) $(if $(ENGINE),$(call at,$(ENGINE_DIR))) \
	  $(foreach h,xseg xtypes,$(call at,$(INCLUDEDIR)/$(h))) \
	  $(foreach m,$(sort $(dir $(PAGE_PATHS))),$(call at,$(MANDIR)/$(m)))
# What `install` has made, for `uninstall`.
FOLDER_LIST = $(call at,$(LIBEXECDIR)/folders)

.PHONY: install-needs
install-needs: $(BIN) libs

install: ## programs, headers, libraries, pkg-config file, Python package, manual pages; PREFIX=/usr/local DESTDIR=
	@$(MAKE) --no-print-directory $(JOBS) install-needs
	@tools/install/folders.sh make $(FOLDER_LIST) $(FOLDERS)
	install -m 755 $(COMMANDS) "$(DESTDIR)$(BINDIR)"
	install -m 755 $(filter-out $(COMMANDS),$(BIN)) $(GUARD) "$(DESTDIR)$(LIBEXECDIR)"
	install -m 644 $(LIBXSEG) "$(DESTDIR)$(LIBDIR)"
	$(if $(LTO),objcopy --remove-section='.gnu.lto_*' --remove-section='.gnu.debuglto_*' "$(DESTDIR)$(LIBDIR)/libxseg.a")
	install -m 755 $(SHARED) "$(DESTDIR)$(LIBDIR)/$(SHARED_FILE)"
	ln -sf $(SHARED_FILE) "$(DESTDIR)$(LIBDIR)/libxseg.so.$(ABI)"
	ln -sf libxseg.so.$(ABI) "$(DESTDIR)$(LIBDIR)/libxseg.so"
	$(if $(PLUGIN),install -m 755 $(PLUGIN) "$(DESTDIR)$(PLUGIN_DIR)/$(notdir $(PLUGIN))")
	$(if $(ENGINE),install -m 755 $(ENGINE) "$(DESTDIR)$(ENGINE_DIR)/$(notdir $(ENGINE))")
	@printf '%s\n' "$$PC_FILE" >"$(DESTDIR)$(LIBDIR)/pkgconfig/xseg.pc"
	@set -e; for h in $$($(headers)); do \
		echo "install -m 644 $$h $(DESTDIR)$(INCLUDEDIR)/$$h"; \
		install -m 644 $$h "$(DESTDIR)$(INCLUDEDIR)/$$h"; \
	done
	install -m 644 $(PYTHON) "$(DESTDIR)$(PYTHONDIR)/xseg"
	install -m 644 tools/completion/xseg.bash "$(DESTDIR)$(BASH_DIR)/xseg"
	ln -sf xseg "$(DESTDIR)$(BASH_DIR)/xbench"
	install -m 644 tools/completion/_xseg "$(DESTDIR)$(ZSH_DIR)"
	@set -e; for m in $(PAGES); do \
		echo "install -m 644 $$m $(DESTDIR)$(MANDIR)/man$${m##*.}/$${m##*/}"; \
		install -m 644 $$m "$(DESTDIR)$(MANDIR)/man$${m##*.}/$${m##*/}"; \
	done

uninstall: ## removes what install put there, with the directories that it made
	rm -f $(addprefix "$(DESTDIR)$(BINDIR)"/,$(notdir $(COMMANDS)))
	rm -f $(addprefix "$(DESTDIR)$(LIBEXECDIR)"/,$(notdir $(filter-out $(COMMANDS),$(BIN)) $(GUARD)))
	rm -f $(addprefix "$(DESTDIR)$(LIBDIR)"/,libxseg.a $(SHARED_FILE) libxseg.so.$(ABI) libxseg.so)
	rm -f "$(DESTDIR)$(LIBDIR)/pkgconfig/xseg.pc"
	rm -f $(addprefix "$(DESTDIR)$(PYTHONDIR)"/xseg/,$(notdir $(PYTHON)))
	rm -rf "$(DESTDIR)$(PYTHONDIR)/xseg/__pycache__"
	rm -f "$(DESTDIR)$(PLUGIN_DIR)/nbdkit-xseg-plugin.so"
	rm -f "$(DESTDIR)$(ENGINE_DIR)/fio-xseg.so"
	rm -f $(addprefix "$(DESTDIR)$(BASH_DIR)"/,xseg xbench) "$(DESTDIR)$(ZSH_DIR)/_xseg"
	rm -f $(addprefix "$(DESTDIR)$(MANDIR)"/,$(PAGE_PATHS))
	@set -e; for h in $$($(headers)); do rm -f "$(DESTDIR)$(INCLUDEDIR)/$$h"; done
	@tools/install/folders.sh remove $(FOLDER_LIST)

deb: ## Debian packages, into build/deb; DEB_VERSION= for another version
	@tests/lib/deps.sh --quiet build deb
	@tests/lib/deps.sh --quiet --without=$(WITHOUT_CEPH) rados
	@bench/fio/headers.sh --once $(FIO_DIR) || true
	@FIO_DIR=$(abspath $(FIO_DIR)) tools/install/deb.sh $(BUILD)/deb

clean: ## removes build, build-asan, build-tsan and build-fuzz
	rm -rf build build-asan build-tsan build-fuzz

help: ## this list
	@sed -n 's/^\([a-z-]*\):.* ## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name text; do \
		printf '  %-13s %s\n' "$$name" "$$text"; done
