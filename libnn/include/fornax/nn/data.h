/* Data sets and loaders. Nothing here touches a device but fnx_loader_next, which uploads what a thread gathered.
 *
 * Threads: one at a time; loaders of several threads may share a data set. */
#ifndef FORNAX_NN_DATA_H
#define FORNAX_NN_DATA_H

#include <fornax/fornax.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fnx_dataset fnx_dataset;

/* Samples of u8 of one shape with labels in [0, 256). Never NULL; a failed one carries its cause. To be destroyed. */

/* Two IDX files, gzip or plain: images (magic 0x803, n x rows x columns) and labels (magic 0x801). Items are [1, rows,
 * columns]. Errors: FNX_E_NOT_FOUND, FNX_E_IO, FNX_E_FORMAT (truncated, corrupt, wrong magic, sizes or counts),
 * FNX_E_NO_MEMORY. */
FNX_API fnx_dataset *fnx_dataset_idx(const char *images, const char *labels);

/* The MNIST family in a directory: {train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz]. directory NULL: Debian's
 * dataset-fashion-mnist (Xiao et al. 2017). */
FNX_API fnx_dataset *fnx_dataset_mnist(const char *directory, bool train);

/* Arrays of the program, which must stay: count items of u8, packed, of a rank below FNX_MAX_RANK; count labels as
 * bytes. Errors: FNX_E_INVALID, FNX_E_SHAPE (sizes are negative or overflow). */
FNX_API fnx_dataset *fnx_dataset_from(int64_t count, int rank, const int64_t *item_sizes, const uint8_t *items,
                                      const uint8_t *labels);

FNX_API void fnx_dataset_destroy(fnx_dataset *d); /* NULL-safe */
FNX_API FNX_CHECKED fnx_status fnx_dataset_status(const fnx_dataset *d);
FNX_API int64_t fnx_dataset_count(const fnx_dataset *d);
FNX_API int fnx_dataset_item(const fnx_dataset *d, int64_t out_sizes[FNX_MAX_RANK]); /* rank and sizes of an item */
FNX_API int fnx_dataset_classes(const fnx_dataset *d);                               /* the largest label + 1 */
FNX_API const uint8_t *fnx_dataset_labels(const fnx_dataset *d);                     /* count bytes, the data set's */
/* Only the first n samples from now on; before a loader is made of it. */
FNX_API void fnx_dataset_limit(fnx_dataset *d, int64_t n);

/* ---- loaders ----------------------------------------------------------------------------------------------------- */

typedef struct fnx_loader fnx_loader;

typedef struct fnx_batch {
    fnx_tensor *x;        /* f32 [n, item..] in [0, 1] */
    fnx_tensor *y;        /* i64 [n] */
    int64_t count;        /* n: batch size, or what is left at the end of an epoch */
    int64_t epoch, index; /* from 0; number of the batch in its epoch */
} fnx_batch;

typedef struct fnx_loader_options {
    int64_t batch; /* 0: 64; more than there are samples: all */
    bool shuffle;
    bool drop_last; /* the last batch, if it is short */
    uint64_t seed;  /* of the order: equal seeds give equal orders on every machine */
} fnx_loader_options;

/* Batches of an epoch after the other. The order of epoch e is Fisher and Yates' shuffle by a PCG32 generator (O'Neill
 * 2014) seeded with (seed, e). Data set and device must outlive it. Never NULL; a failed one carries its cause: that of
 * data set or device, FNX_E_INVALID (not one batch, more than 2^31 samples), FNX_E_NO_MEMORY. */
FNX_API fnx_loader *fnx_loader_with(fnx_device *device, const fnx_dataset *data,
                                    const fnx_loader_options *options_or_null);
#define fnx_loader_create(device, data, ...) fnx_loader_with(device, data, &(fnx_loader_options){__VA_ARGS__})
FNX_API void fnx_loader_destroy(fnx_loader *l); /* NULL-safe */
FNX_API FNX_CHECKED fnx_status fnx_loader_status(const fnx_loader *l);

/* The next batch of the epoch, which the loader owns until the next call (fnx_retain what is to live longer); false at
 * its end (the next call starts the next epoch) or if the loader failed (then fnx_loader_status says why). */
FNX_API bool fnx_loader_next(fnx_loader *l, fnx_batch *out);

FNX_API int64_t fnx_loader_batches(const fnx_loader *l); /* of an epoch; 0 if it failed */
/* Where it stands: the batch that comes next. Setting it continues there, with the same order; a batch that there is
 * not is ignored. */
FNX_API void fnx_loader_position(const fnx_loader *l, int64_t *out_epoch, int64_t *out_index);
FNX_API void fnx_loader_seek(fnx_loader *l, int64_t epoch, int64_t index);

#ifdef __cplusplus
}
#endif
#endif
