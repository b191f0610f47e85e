// What NVRTC may not do: change how this process takes signals.

#ifndef HALOX_NVRTC_SIGNALS_H
#define HALOX_NVRTC_SIGNALS_H

// halox_leave_signals makes a library's calls of signal and sigaction do nothing. While it compiles, NVRTC has SIGINT
// and SIGTERM end the process; later it puts back what was there by signal, which loses the flags that Go needs (such as
// SA_ONSTACK), and of compilations side by side one may put back what another had set.
//
// symbol is the address of anything in the library. It returns 0 if the library's relocations cannot be read or written.
int halox_leave_signals(void *symbol);

#endif
