/*
 * What a URL class consists of. Inside match/: only url_class.c and class_settling.c include it.
 */
#ifndef RETORT_MATCH_URL_CLASS_INTERNAL_H
#define RETORT_MATCH_URL_CLASS_INTERNAL_H

#include "match/class_conditions.h"
#include "match/class_lists.h"
#include "match/name_table.h"
#include "match/network_set.h"
#include "match/regex.h"
#include "match/url_class.h"

struct host_condition {
    struct name_table exact;
    struct name_table below; /* parents of the names that match */
};

struct port_range {
    uint16_t from, to;
};

struct url_class {
    unsigned magic;
#define URL_CLASS_MAGIC 0x55434c53u
    char *name;
    unsigned asks;
    bool any_seldom; /* states one of the conditions that seldom_answer compares */
    struct url_class_conditions conditions; /* as given; slices of the sets point into it */
    struct host_condition hosts, domains, snis;
    struct regexes path_regexes, url_regexes;
    struct network_set *clients, *destinations; /* NULL: not stated */
    struct port_range *ports;
    size_t port_count;
    struct name_table users, groups;
    struct class_fields fields;
    struct class_hours *hours; /* NULL: not stated */
    struct class_list_array lists[LISTS_OF_ALL];
    struct class_references any_of, none_of;
    enum { CLASS_LOOSE, CLASS_SETTLING, CLASS_SETTLED } state; /* see url_class_settle */
    unsigned weight; /* how many classes a comparison goes through; once settled */
};

#endif
