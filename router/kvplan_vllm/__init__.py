"""An optional scheduler for vLLM that keeps room for what a request was planned to grow to.

Stock vLLM admits a request when its prompt fits and takes output blocks one at a time, so a full cache preempts. With
``--scheduler-cls kvplan_vllm.scheduler.ReservingScheduler`` an admitted request also finds the rest of its reservation
free: the reservation r of the BCD-DRO paper binds inside the engine too, not only at the router. Off unless that flag
is given; it refuses to start on versions of vLLM it was not tried on, because the interface it extends is not public.
"""
