#include "gray/gamma_luma.h"

#include <math.h>
#include <stdlib.h>

struct gamma_luma {
    double *light; /* of each sample */
    double *least; /* the least light that is rounded to the sample */
};

struct gamma_luma *gamma_luma_create(uint32_t gamma, unsigned most) {
    double exponent = 100000.0 / gamma;
    struct gamma_luma *luma = malloc(sizeof *luma + 2 * sizeof(double) * ((size_t)most + 1));
    if (luma == NULL)
        return NULL;
    luma->light = (double *)(luma + 1);
    luma->least = luma->light + most + 1;
    for (unsigned i = 0; i <= most; i++) {
        luma->light[i] = pow((double)i / most, exponent);
        luma->least[i] = i == 0 ? 0 : pow((i - 0.5) / most, exponent);
    }
    return luma;
}

unsigned gamma_luma_of(const struct gamma_luma *luma, unsigned red, unsigned green, unsigned blue) {
    const double *light = luma->light;
    double wanted = 0.299 * light[red] + 0.587 * light[green] + 0.114 * light[blue];
    unsigned low = red < green ? red : green, high = red < green ? green : red;
    low = blue < low ? blue : low;
    high = blue > high ? blue : high;
    while (low < high) {
        unsigned middle = high - (high - low) / 2;
        if (luma->least[middle] <= wanted)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

void gamma_luma_free(struct gamma_luma **lumap) {
    free(*lumap);
    *lumap = NULL;
}
