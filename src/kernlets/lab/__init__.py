"""The laboratory measures the library, which never imports it.

* `bench`: seconds, memory, machine, records, tables, charts and pages, each written
  once and used by everything below.
* `published`: the numbers that the papers print, in one table.
* `demo`: `kernlets demo`.
* `papers`: `kernlets reproduce` and `kernlets report`, the papers' experiments.
* `speed`: `kernlets bench`, seconds beside those of the matrix products alone.
* `peers`: what ``python -m benchmarks`` runs; the benchmarks themselves are in the
  folder ``benchmarks`` of the repository.
* `pages`: ``python -m kernlets.lab.pages`` writes the pages in ``docs`` from records.

Nothing is imported here: a fresh process that measures memory loads `bench` alone.
"""
