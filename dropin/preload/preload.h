/* Declarations that the files of the preloaded library share. */
#ifndef SOFTRNIC_PRELOAD_H
#define SOFTRNIC_PRELOAD_H

#define PUBLIC __attribute__((visibility("default")))

/* softrnic_resolve returns the function that trampoline `index` jumps to, and stores it in the trampoline's slot. The
 * assembly calls it with the argument registers saved. It leaves errno alone and ends the program if no library has the
 * function. */
void *softrnic_resolve(unsigned index);

/* softrnic_engine returns the handle of the engine, which it loads at the first call, or NULL if SOFTRNIC_DROPIN=off or
 * the engine cannot be loaded. */
void *softrnic_engine(void);

#endif
