# Build, install and test pg_interlock with PGXS.
#
#   make                      build against the pg_config in PATH (or PG_CONFIG=...)
#   make with_llvm=yes        the same with bitcode for the server's JIT
#   make install
#   make installcheck         regression and isolation suites, on a running server with the library
#                             preloaded and interlock.sweeper = off; see script/each-level
#   make pgtap                pgTAP suite, on a running server
#   make prove                TAP suite, on clusters of its own
#   make dist                 the archive for PGXN, of what is committed
#
# script/test does all of this on a private cluster.

EXTENSION = pg_interlock
MODULE_big = pg_interlock
PG_CONFIG ?= pg_config

# Wildcards look beside this file, so that VPATH builds find their sources.
HERE := $(patsubst %/,%,$(dir $(firstword $(MAKEFILE_LIST))))
find = $(patsubst $(HERE)/%,%,$(wildcard $(addprefix $(HERE)/,$(1))))

EXTVERSION := $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" $(HERE)/pg_interlock.control)
SOURCES := $(call find,src/*.cpp src/*/*.cpp)
OBJS = $(SOURCES:.cpp=.o)

# The install script is made of the SQL of each concept. Those of released versions, and scripts that upgrade, are in sql/.
extension_sql = .sql/$(EXTENSION)--$(EXTVERSION).sql
concept_sql := $(call find,src/*.sql src/*/*.sql)
DATA = $(filter-out sql/$(notdir $(extension_sql)),$(call find,sql/$(EXTENSION)--*.sql))
DATA_built = $(extension_sql)

# Server headers are system headers: their warnings are not ours to fix.
DIALECT = -std=c++20 -fno-exceptions -fno-rtti -fno-threadsafe-statics
PG_CXXFLAGS = $(DIALECT) -Wall -Wextra $(COPT)
PG_CPPFLAGS = -I$(HERE)/src -isystem $(includedir_server) -DINTERLOCK_VERSION='"$(EXTVERSION)"'

# Tests: inputs in test/, outputs of both suites in expected/. A file in sql/
# must never share its name with a test: pg_regress would run it instead.
REGRESS = $(basename $(notdir $(call find,test/sql/*.sql)))
REGRESS_OPTS = --inputdir=$(HERE)/test --launcher=$(HERE)/test/helpers/compact --load-extension=$(EXTENSION)
ISOLATION = $(basename $(notdir $(call find,test/specs/iso_*.spec)))
ISOLATION_OPTS = --inputdir=$(abspath $(HERE)/test) --load-extension=$(EXTENSION)
PROVE_TESTS = test/t/*/*.pl

EXTRA_CLEAN = .boundary .pch .sql $(OBJS:.o=.d) $(EXTENSION)-$(EXTVERSION).zip

# The server's JIT inlines what is short and touches no variables of the library into an expression that is computed for very
# many rows. No function here is of that kind, and bitcode would double the time of the build.
ifneq ($(origin with_llvm),command line)
override with_llvm = no
endif

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# One isolation spec serves three levels.
pg_isolation_regress_installcheck = $(HERE)/script/each-level \
    $(top_builddir)/src/test/isolation/pg_isolation_regress --bindir='$(bindir)' \
    $(pg_regress_locale_flags) $(EXTRA_REGRESS_OPTS)

ifeq ($(filter $(MAJORVERSION),15 16 17 18 19),)
ifndef ANY_SERVER
$(error pg_interlock supports PostgreSQL 15 to 19, and $(PG_CONFIG) is $(MAJORVERSION); set ANY_SERVER=1 to try all the same)
endif
endif

# PGXS leaves our dialect out of the bitcode step.
COMPILE.cxx.bc += $(DIALECT)

# The server's headers take most of the time, so they are read once, into a precompiled header that every file begins with.
# Its name stands for the compiler and its flags: other flags make another one, as does a server header that has changed, and
# all objects are compiled again. The headers of a staged server are a link and count as what it points to.
compile = $(CXX) $(CXXFLAGS) $(CPPFLAGS)
flags := $(subst $(includedir_server),$(realpath $(includedir_server)),$(filter-out -I%,$(compile)))
pch := .pch/$(shell { $(CXX) --version; echo '$(subst ','\'',$(flags))'; } | cksum | tr ' ' -)/server.h.gch

# ccache declines a precompiled header otherwise.
export CCACHE_SLOPPINESS ?= pch_defines,time_macros

# PGXS lets make do without files that are missing (.SECONDARY), unless they depend on what is always made.
.PHONY: always
$(pch): Makefile $(EXTENSION).control $(if $(wildcard $(pch)),,always)
	rm -rf .pch
	mkdir -p $(@D)
	echo '#include "server/server.h"' >$(@:.gch=)
	$(compile) -MD -MP -MF $@.d -o $@ -x c++-header $(@:.gch=)

# A header edit rebuilds what includes it, the bitcode along with its object.
FOLDERS := $(patsubst %/,$(CURDIR)/%,$(sort $(dir $(OBJS) $(extension_sql))))
$(OBJS): %.o: %.cpp $(pch) | $(FOLDERS)
	$(compile) -include $(pch:.gch=) -MMD -MP -MF $(@:.o=.d) -o $@ -c $<
$(OBJS:.o=.bc): %.bc: %.o
-include $(OBJS:.o=.d) $(pch).d
$(FOLDERS):
	mkdir -p $@

$(extension_sql): $(concept_sql) script/install-script $(EXTENSION).control | $(FOLDERS)
	$(HERE)/script/install-script >$@

# The library must load without the C++ run time (see script/check-boundary).
all: .boundary
.boundary: $(shlib) $(HERE)/script/check-boundary
	$(HERE)/script/check-boundary $(shlib)
	@touch $@

.PHONY: dist
dist: $(extension_sql)
	$(HERE)/script/dist $(EXTENSION)-$(EXTVERSION) $(extension_sql)

.PHONY: prove pgtap
prove:
	$(prove_installcheck)

PGTAP_DB = contrib_regression_pgtap
pgtap:
	'$(bindir)/dropdb' --if-exists $(PGTAP_DB)
	'$(bindir)/createdb' $(PGTAP_DB)
	'$(bindir)/psql' -qXd $(PGTAP_DB) -c 'CREATE EXTENSION pgtap' -c 'CREATE EXTENSION $(EXTENSION)'
	pg_prove -d $(PGTAP_DB) $(wildcard $(HERE)/test/pgtap/*.sql)
	'$(bindir)/dropdb' $(PGTAP_DB)
