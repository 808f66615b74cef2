"""The query tool: published releases on the web, for people and programs (002, §3.4).

Nothing here opens confidential data, holds a key or draws noise: import contracts and a test see to it. So whatever is
asked, how often and by whom, values, errors, sizes and timing can only speak of what is already published.
"""
