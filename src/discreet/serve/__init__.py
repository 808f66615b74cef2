"""The query tool: published releases on the web, for people and programs (Li & Krenzke 2020, §3.4).

Nothing here opens confidential data, holds a key or draws noise; import contracts and a test enforce it. Every answer
is post-processing: values, errors, sizes and timing depend on published data and on the query alone.
"""
