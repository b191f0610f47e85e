/* Asks an MPI library what it makes of a datatype. Each case on standard input is a count and a type, in words:
 *
 *   n basic                                    predefined, by its place in the table below
 *   c count T                                  contiguous
 *   v count length stride T                    vector; w: hvector
 *   i n lengths displacements T                indexed; I: hindexed
 *   b n length displacements T                 indexed_block; B: hindexed_block
 *   s n sizes subsizes starts fortran T        subarray
 *   t n lengths displacements T...             struct
 *   r lb extent T                              resized
 *
 * Each answer is a line: size, lb, extent, true lb and true extent of the type, then hashes of what MPI_Pack makes of count
 * elements of a numbered buffer, and of a zeroed buffer into which that was unpacked. Where the elements span more than the
 * limits below, a hash is "-". */
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { pack_limit = 16 << 20, unpack_limit = 1 << 20 };

static const char *doing = "reading";

static void die(const char *why) {
    fprintf(stderr, "mpipack: %s: %s\n", doing, why);
    exit(1);
}

static long long number(void) {
    long long n;
    if (scanf("%lld", &n) != 1) die("a number is missing");
    return n;
}

static void *list(size_t n, size_t size) {
    void *p = calloc(n + 1, size);
    if (!p) die("no memory");
    return p;
}

static int *ints(int n) {
    int *a = list(n, sizeof *a);
    for (int i = 0; i < n; i++) a[i] = number();
    return a;
}

static MPI_Aint *addresses(int n) {
    MPI_Aint *a = list(n, sizeof *a);
    for (int i = 0; i < n; i++) a[i] = number();
    return a;
}

static MPI_Datatype basic(int i) {
    const MPI_Datatype table[] = {MPI_BYTE,    MPI_INT8_T,   MPI_INT16_T,  MPI_INT32_T, MPI_INT64_T, MPI_UINT8_T,         MPI_UINT16_T,
                                  MPI_UINT32_T, MPI_UINT64_T, MPI_FLOAT,    MPI_DOUBLE,  MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX};
    return table[i];
}

static MPI_Datatype type(void);

/* Frees a child that its parent has taken. */
static void release(MPI_Datatype t) {
    int integers, addresses, types, combiner;
    MPI_Type_get_envelope(t, &integers, &addresses, &types, &combiner);
    if (combiner != MPI_COMBINER_NAMED) MPI_Type_free(&t);
}

static MPI_Datatype subarray(void) {
    MPI_Datatype made, child;
    int n = number();
    int *sizes = ints(n), *subsizes = ints(n), *starts = ints(n);
    int order = number() ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
    MPI_Type_create_subarray(n, sizes, subsizes, starts, order, child = type(), &made);
    release(child);
    free(sizes), free(subsizes), free(starts);
    return made;
}

static MPI_Datatype structure(void) {
    MPI_Datatype made;
    int n = number();
    int *lengths = ints(n);
    MPI_Aint *displacements = addresses(n);
    MPI_Datatype *types = list(n, sizeof *types);
    for (int i = 0; i < n; i++) types[i] = type();
    MPI_Type_create_struct(n, lengths, displacements, types, &made);
    for (int i = 0; i < n; i++) release(types[i]);
    free(lengths), free(displacements), free(types);
    return made;
}

static MPI_Datatype vector(char word) {
    MPI_Datatype made, child;
    int count = number(), length = number();
    MPI_Aint stride = number();
    child = type();
    if (word == 'v')
        MPI_Type_vector(count, length, (int)stride, child, &made);
    else
        MPI_Type_create_hvector(count, length, stride, child, &made);
    release(child);
    return made;
}

static MPI_Datatype indexed(char word) {
    MPI_Datatype made, child;
    int n = number(), *lengths = ints(n);
    if (word == 'i') {
        int *displacements = ints(n);
        MPI_Type_indexed(n, lengths, displacements, child = type(), &made);
        free(displacements);
    } else {
        MPI_Aint *displacements = addresses(n);
        MPI_Type_create_hindexed(n, lengths, displacements, child = type(), &made);
        free(displacements);
    }
    free(lengths);
    release(child);
    return made;
}

static MPI_Datatype blocks(char word) {
    MPI_Datatype made, child;
    int n = number(), length = number();
    if (word == 'b') {
        int *displacements = ints(n);
        MPI_Type_create_indexed_block(n, length, displacements, child = type(), &made);
        free(displacements);
    } else {
        MPI_Aint *displacements = addresses(n);
        MPI_Type_create_hindexed_block(n, length, displacements, child = type(), &made);
        free(displacements);
    }
    release(child);
    return made;
}

static MPI_Datatype type(void) {
    MPI_Datatype made, child;
    char word;
    if (scanf(" %c", &word) != 1) die("a type is missing");
    switch (word) {
    case 'n': return basic(number());
    case 'v': case 'w': return vector(word);
    case 'i': case 'I': return indexed(word);
    case 'b': case 'B': return blocks(word);
    case 's': return subarray();
    case 't': return structure();
    case 'c': {
        int count = number();
        MPI_Type_contiguous(count, child = type(), &made);
        release(child);
        return made;
    }
    case 'r': {
        MPI_Aint lb = number(), extent = number();
        MPI_Type_create_resized(child = type(), lb, extent, &made);
        release(child);
        return made;
    }
    }
    die("an unknown word");
    return MPI_DATATYPE_NULL;
}

static uint64_t hash(const unsigned char *p, size_t n) {
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 1099511628211u;
    return h;
}

static unsigned char *numbered(size_t n) {
    unsigned char *p = list(n, 1);
    uint64_t x = 1;
    for (size_t i = 0; i < n; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        p[i] = x >> 56;
    }
    return p;
}

static void answer(int count, MPI_Datatype t, unsigned char *buffer) {
    MPI_Count size;
    MPI_Aint lb, extent, true_lb, true_extent;
    MPI_Type_commit(&t);
    MPI_Type_size_x(t, &size);
    MPI_Type_get_extent(t, &lb, &extent);
    MPI_Type_get_true_extent(t, &true_lb, &true_extent);
    printf("%lld %lld %lld %lld %lld", (long long)size, (long long)lb, (long long)extent, (long long)true_lb, (long long)true_extent);
    long long reach = count > 0 ? (count - 1) * (long long)extent : 0;
    long long span = true_extent + llabs(reach), low = true_lb + (reach < 0 ? reach : 0);
    if (size * count == 0 || span > pack_limit) {
        puts(" - -");
        return;
    }
    int bytes = size * count, at = 0;
    unsigned char *packed = list(bytes, 1);
    MPI_Pack(buffer - low, count, t, packed, bytes, &at, MPI_COMM_SELF);
    printf(" %016" PRIx64, hash(packed, at));
    if (span > unpack_limit) {
        puts(" -");
    } else {
        unsigned char *back = list(span, 1);
        at = 0;
        MPI_Unpack(packed, bytes, &at, back - low, count, t, MPI_COMM_SELF);
        printf(" %016" PRIx64 "\n", hash(back, span));
        free(back);
    }
    free(packed);
}

int main(int argc, char **argv) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, count;
    MPI_Init(&argc, &argv);
    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = 0;
    puts(version);
    unsigned char *buffer = numbered(pack_limit);
    while (scanf("%d", &count) == 1) {
        doing = "a case";
        MPI_Datatype t = type();
        answer(count, t, buffer);
        release(t);
    }
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
