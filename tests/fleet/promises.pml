/*
 * The promise of a fleet, for Spin: whatever happens, nobody serves what was purged once the moment has come that the
 * answer to the purge has named (proxy/parts/fleet/node.h).
 *
 * One node tells a purge (teller), one has stored what is purged (holder). The engine may be replaced by a server that lacks the
 * purge, although it had acknowledged it. The teller may die at any moment. Everything may take any time: between two ticks of
 * the clock, each process does any number of its steps, or none.
 *
 * The stream is not modelled entry by entry. What counts is whether the purge stands in front of what the holder appends, and
 * in which generation of the engine. Within a generation nothing is lost: an event that was read back has all in front of it
 * that was there when it was appended (the questions about the newest mark see to that).
 *
 *     spin -a promises.pml && gcc -O2 -o pan pan.c && ./pan -m100000
 *
 * With -DFORGETS, -DTRUSTS or -DLATE the model has a mistake, and Spin finds it:
 *     FORGETS   the teller does not append again what an engine lacks
 *     TRUSTS    the holder takes a proof in another generation without asking whether the teller has lost anything
 *     LATE      the lease begins when the event is read back, not before it is appended
 */
#define LEASE 2
#define END   6 /* ticks */

byte now;

/* The engine. */
byte generation; /* another one serves when it is counted up */
bool has;        /* it has the purge */

/* The teller: what it has answered, and which generation its last "alive" says. */
bool answered;
byte all_by;
bool alive = true;
byte said;

/* The holder. */
bool forgot;    /* the purge is in force here, or all that was stored is doubted */
byte until;     /* it vouches until then */
byte known;     /* the generation of its last proof */
byte changed;   /* when it has seen another one */
bool awaits;    /* for the teller, in that generation */
bool under_way; /* its event is appended */
byte at, at_generation;
bool in_front; /* the purge is in front of it */
byte p_at, p_generation; /* the same, when it is read back */
bool p_front;

active proctype clock_ticks() {
    do
    :: now < END -> now++
    :: now == END -> break
    od
}

active proctype engine() {
    do
    :: generation < 2 -> atomic {
        generation++;
        if
        :: has = false /* it was acknowledged, but had not been copied yet */
        :: skip
        fi
    }
    :: break
    od
}

active proctype teller() {
    byte mine = 0;
    do
    :: alive && !answered && mine == generation -> atomic {
        if
        :: mine == generation -> has = true; answered = true; all_by = now + LEASE
        :: else
        fi
    }
    :: alive && mine != generation -> atomic {
        mine = generation;
#ifndef FORGETS
        has = has || answered;
#endif
    }
    :: alive && mine == generation && said != mine -> atomic {
        /* What was appended again stands in front of it. */
        if
        :: mine == generation -> said = mine
        :: else
        fi
    }
    :: alive = false; break
    :: now == END -> break
    od
}

/* The holder reads what the stream has, at any time. */
active proctype holder() {
    do
    :: now < END && !under_way -> atomic {
        under_way = true;
        at = now;
        at_generation = generation;
        in_front = has
    }
    :: under_way -> atomic {
        under_way = false;
        d_step { p_at = at; p_generation = at_generation; p_front = in_front; at = 0; at_generation = 0; in_front = false };
        if
        :: p_generation != generation /* lost, or of an engine that serves no more */
        :: else ->
            forgot = forgot || p_front;
            if
            :: known != generation && !awaits -> awaits = true; changed = now
            :: else
            fi;
#ifndef TRUSTS
            if
            :: awaits && said == generation ->
                forgot = forgot || has; /* it was read in front of the teller's "alive" */
                awaits = false; changed = 0; known = generation
            :: awaits && said != generation && now > changed + LEASE ->
                forgot = true; /* all is doubted; the next proof counts */
                awaits = false; changed = 0; known = generation; p_at = 0
            :: else
            fi;
#else
            awaits = false; known = generation;
#endif
            if
#ifdef LATE
            :: !awaits -> until = now + LEASE
#else
            :: !awaits && p_at + LEASE > until -> until = p_at + LEASE
#endif
            :: else
            fi
        fi;
        d_step { p_at = 0; p_generation = 0; p_front = false }
    }
    :: now < END -> forgot = forgot || has /* it reads on without proving anything */
    :: now == END -> break
    od
}

/* Nobody serves what was purged. */
active proctype client() {
end:
    do
    :: assert(!(answered && now >= all_by && now < until && !forgot))
    od
}
