"""The HTTP data plane and its parent: connections, the driver of ``Path``, the relay, the channel, the admin API.

Two processes: the data process (``process.py``) moves bytes and decides; its parent (``child.py``, ``admin.py``)
starts it, feeds it readings and answers operators. They meet only in ``messages.py``, over ``channel.py``.
"""
