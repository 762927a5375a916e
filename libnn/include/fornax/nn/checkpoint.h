/* Checkpoints: safetensors files with the values of a module, and to go on training, of its optimizer and generator.
 *
 * Tensors: "model.<path>" for parameters and buffers, "optimizer.<path>" for state. The metadata holds texts of the
 * program's and what fornax adds ("fornax.*": format, optimizer, steps, generator). A file is written beside its place,
 * synced, and renamed: a full disk or a crash leaves the old one. Readers take every file as hostile.
 *
 * The format: "Format" in the README of huggingface/safetensors. Threads: any, each with its own module; a file that is
 * open may be read by many. */
#ifndef FORNAX_NN_CHECKPOINT_H
#define FORNAX_NN_CHECKPOINT_H

#include <fornax/nn/optimizer.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fnx_text_pair {
    const char *key, *value;
} fnx_text_pair;

/* optimizer may be NULL. metadata ends with a NULL key, or is NULL; keys that begin with "fornax." are ours. Waits for
 * the values. Errors: as fnx_safetensors_save, and what computing the values failed with. */
FNX_API FNX_CHECKED fnx_status fnx_checkpoint_save(const char *path, fnx_module *net, fnx_optimizer *optimizer,
                                                   const fnx_text_pair *metadata);

/* Gives the module (and, if `optimizer` is not NULL, it and the device's generator) the values of the file; waits.
 * Everything is checked before the first value changes: FNX_E_NOT_FOUND, FNX_E_IO, FNX_E_FORMAT (no right safetensors
 * file, or not of fnx_checkpoint_save), FNX_E_INVALID (another architecture or optimizer, or none: missing, unexpected
 * and differing tensors are listed). */
FNX_API FNX_CHECKED fnx_status fnx_checkpoint_load(const char *path, fnx_module *net, fnx_optimizer *optimizer);

/* ---- files ------------------------------------------------------------------------------------------------------- */

typedef struct fnx_safetensors fnx_safetensors;

typedef struct fnx_safetensor {
    const char *name;
    int dtype, rank; /* any dtype but complex ones */
    int64_t sizes[FNX_MAX_RANK];
    const void *data; /* in the file's memory */
    uint64_t bytes;
} fnx_safetensor;

/* Maps and checks a file: header at most 100 MB, no name twice, data without gaps, overlaps or rest, sizes that fit
 * dtype and shape. Never NULL; a failed one carries its cause (FNX_E_NOT_FOUND, FNX_E_IO, FNX_E_FORMAT), and has no
 * tensors. What the functions below return belongs to the file and lives until it is closed. */
FNX_API fnx_safetensors *fnx_safetensors_open(const char *path);
/* The same from memory, which must stay. `name` is for messages. */
FNX_API fnx_safetensors *fnx_safetensors_from(const void *bytes, size_t size, const char *name);
FNX_API void fnx_safetensors_close(fnx_safetensors *f); /* NULL-safe */
FNX_API FNX_CHECKED fnx_status fnx_safetensors_status(const fnx_safetensors *f);
FNX_API int fnx_safetensors_count(const fnx_safetensors *f);
/* In the order of their data, or by name; NULL if there is none. */
FNX_API const fnx_safetensor *fnx_safetensors_at(const fnx_safetensors *f, int i);
FNX_API const fnx_safetensor *fnx_safetensors_find(const fnx_safetensors *f, const char *name);
FNX_API const char *fnx_safetensors_metadata(const fnx_safetensors *f, const char *key); /* NULL if there is none */

/* Writes tensors (data packed, row-major) and metadata, atomically. Errors: FNX_E_IO (what the system said),
 * FNX_E_INVALID (a name twice, text that is not UTF-8, a dtype that the format does not have), FNX_E_NO_MEMORY. */
FNX_API FNX_CHECKED fnx_status fnx_safetensors_save(const char *path, const fnx_safetensor *tensors, int n,
                                                    const fnx_text_pair *metadata);

#ifdef __cplusplus
}
#endif
#endif
