//go:build linux && cgo

#define _GNU_SOURCE // dl_iterate_phdr, dladdr

#include "signals.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void (*handler)(int);

static handler leave_signal(int number, handler to) {
	(void)number, (void)to;
	return SIG_IGN; // who sees that a signal is ignored leaves it so
}

static int leave_sigaction(int number, const struct sigaction *to, struct sigaction *was) {
	(void)to;
	return was ? sigaction(number, NULL, was) : 0;
}

// A library: its name to find it by, and whether its slots were written.
struct search {
	const char *name;
	int written;
};

// put writes a slot of the table of functions. Where the loader has made the table read-only, it is so again after that.
static int put(const struct dl_phdr_info *library, ElfW(Addr) *slot, void *function) {
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)slot & ~(page - 1);
	int read_only = 0;
	for (int i = 0; i < library->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = library->dlpi_phdr + i;
		const uintptr_t begin = library->dlpi_addr + h->p_vaddr;
		read_only |= h->p_type == PT_GNU_RELRO && (uintptr_t)slot >= begin && (uintptr_t)slot < begin + h->p_memsz;
	}
	if (read_only && mprotect((void *)at, page, PROT_READ | PROT_WRITE) != 0) return 0;
	*slot = (ElfW(Addr))function;
	return !read_only || mprotect((void *)at, page, PROT_READ) == 0;
}

// visit writes the slots of the library that is looked for, and then ends the search.
static int visit(struct dl_phdr_info *library, size_t size, void *argument) {
	struct search *s = argument;
	(void)size;
	if (strcmp(library->dlpi_name, s->name) != 0) return 0;
	const ElfW(Dyn) *d = NULL;
	for (int i = 0; i < library->dlpi_phnum; i++)
		if (library->dlpi_phdr[i].p_type == PT_DYNAMIC) d = (void *)(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr);
	const ElfW(Sym) *symbols = NULL;
	const char *names = NULL;
	const ElfW(Rela) *table[2] = {NULL, NULL}; // of calls, and of other addresses
	size_t bytes[2] = {0, 0};
	for (; d && d->d_tag != DT_NULL; d++) {
		void *there = (void *)d->d_un.d_ptr;
		switch (d->d_tag) {
		case DT_SYMTAB: symbols = there; break;
		case DT_STRTAB: names = there; break;
		case DT_JMPREL: table[0] = there; break;
		case DT_PLTRELSZ: bytes[0] = d->d_un.d_val; break;
		case DT_RELA: table[1] = there; break;
		case DT_RELASZ: bytes[1] = d->d_un.d_val; break;
		}
	}
	if (!symbols || !names) return 1;
	s->written = 1;
	for (int t = 0; t < 2; t++)
		for (size_t i = 0; table[t] && i < bytes[t] / sizeof(ElfW(Rela)); i++) {
			const ElfW(Rela) *r = table[t] + i;
			const char *name = names + symbols[ELF64_R_SYM(r->r_info)].st_name;
			void *function = strcmp(name, "signal") == 0      ? (void *)leave_signal
			                 : strcmp(name, "sigaction") == 0 ? (void *)leave_sigaction
			                                                  : NULL;
			if (function && !put(library, (ElfW(Addr) *)(library->dlpi_addr + r->r_offset), function)) s->written = 0;
		}
	return 1;
}

int halox_leave_signals(void *symbol) {
	Dl_info info;
	if (!dladdr(symbol, &info)) return 0;
	struct search s = {info.dli_fname, 0};
	dl_iterate_phdr(visit, &s);
	return s.written;
}
