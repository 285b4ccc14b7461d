/* A library with the driver's name and nothing in it, as toolkits install for linking (C8). */
int a_translation_unit_is_not_empty;
